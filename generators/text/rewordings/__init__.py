"""Rules that reword a caption and keep its exact meaning."""
