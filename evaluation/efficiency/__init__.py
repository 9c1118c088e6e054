"""What a model costs: seconds an image and caption, and scores against them."""
