"""From annotations to plans: which frames of a video to take and which pairs to make of them."""
