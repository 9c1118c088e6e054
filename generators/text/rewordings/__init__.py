"""Rules that reword a caption so that it says exactly the same."""
