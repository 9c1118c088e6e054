"""The floor textures that eqforge brings: two photographs made seamless, and seven made by code."""
