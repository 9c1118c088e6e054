"""Multimodal language models asked which caption is of which image, in both orders of both."""
