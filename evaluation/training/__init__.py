"""Losses that make image-text scores sensitive to small changes, and training with them."""
