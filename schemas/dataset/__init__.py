"""A finished dataset as a folder: its manifest, tables, card, and scores."""
