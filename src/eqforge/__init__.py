"""Construct benchmarks of minimal pairs for vision-language models, and regenerate the published ones."""

__version__ = "0.1.0"
