"""The tasks that `eqforge metrics` can score."""
