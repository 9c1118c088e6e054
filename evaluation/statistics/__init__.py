"""Uncertainty of scores: clusters, intervals, comparisons of two models, and named averages."""
