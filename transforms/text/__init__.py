"""Captions and their edits: perturbations, hard positives, training captions."""
