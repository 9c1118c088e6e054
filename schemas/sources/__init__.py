"""Readers of the annotation formats of others, each into frozen records."""
