"""Editors of images by diffusion models, behind one interface: `records`, `registry`."""
