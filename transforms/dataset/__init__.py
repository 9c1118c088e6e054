"""Builds a dataset from its plan to its finished files."""
