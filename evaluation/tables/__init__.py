"""Reads scores, joins them with their dataset by key, and makes the papers' tables."""
