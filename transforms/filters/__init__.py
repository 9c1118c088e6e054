"""Measures images and pairs of images, and rejects bad values."""
