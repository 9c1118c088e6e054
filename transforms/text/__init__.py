"""Edits captions: perturbations, hard positives, training captions."""
