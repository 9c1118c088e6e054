"""Pure functions on captions: analysis, edits, perturbations, hard positives and negatives."""
