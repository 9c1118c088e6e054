"""Scores a dataset's images and captions with a model: each image and caption encoded once."""
