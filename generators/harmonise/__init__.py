"""Turns renderings into pictures that look like photographs, steered by their depth or edges."""
