"""Construct benchmarks of minimal pairs for vision-language models."""

__version__ = "0.1.0"
