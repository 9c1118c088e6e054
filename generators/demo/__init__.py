"""A small, self-made workspace: clips, and annotations in every format eqforge reads."""
