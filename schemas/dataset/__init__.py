"""A finished dataset as a folder: its manifest, its tables, its card, scores made of it."""
