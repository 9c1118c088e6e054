"""Checks reworded captions with models."""
