"""Finds what makes a text pair unusable, in the published sets as in eqforge's own."""
