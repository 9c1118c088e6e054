"""A small, self-made workspace: clips, and annotations of them in every format eqforge reads."""
