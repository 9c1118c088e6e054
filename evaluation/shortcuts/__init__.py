"""Audit how well text alone separates true captions from false ones."""
