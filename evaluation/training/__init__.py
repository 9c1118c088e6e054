"""Losses that make scores of image-text models follow small changes, and training with them."""
