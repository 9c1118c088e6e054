"""Reads scores, joins them with their dataset by key, and sets the papers' tables."""
