"""Score a dataset's images and captions with a model, encoding each image and caption once."""
