"""How well the text alone tells true captions from false ones."""
