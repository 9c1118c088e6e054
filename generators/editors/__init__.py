"""Editors of pictures by diffusion models, behind one interface: `records`, `registry`."""
