"""A model's cost: seconds per image-caption pair, and scores against time."""
