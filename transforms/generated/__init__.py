"""Pairs that a diffusion model draws or Blender renders."""
