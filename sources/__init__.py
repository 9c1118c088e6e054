"""Readers of published annotation formats, each into frozen records."""
