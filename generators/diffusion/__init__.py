"""Pairs of prompts, and pairs of images generated from them by a diffusion model."""
