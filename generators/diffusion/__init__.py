"""Pairs of prompts, and pairs of pictures drawn from them by a diffusion model."""
