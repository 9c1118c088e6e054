"""Judges with image-text models whether a caption matches only its own image."""
