"""Results of evaluation harnesses, joined with a dataset by the ids of what was asked."""
