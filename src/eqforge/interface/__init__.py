"""The commands as Python functions, and a finished dataset as an object."""
