"""What a model costs: seconds per image-caption pair, and scores against time."""
