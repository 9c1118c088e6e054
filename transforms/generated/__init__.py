"""Makes pairs with a diffusion model, an image editor or Blender."""
