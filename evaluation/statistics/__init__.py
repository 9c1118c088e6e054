"""How sure a score is: clusters, intervals, comparisons of two models, and named averages."""
