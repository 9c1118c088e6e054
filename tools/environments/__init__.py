"""The environment pictures that eqforge brings: copied, pinned and measured."""
