"""Read scores, join them with their dataset by key, and make the papers' tables."""
