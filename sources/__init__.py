"""Readers of published annotation formats; each yields frozen records."""
