"""From what judges say, and labels by hand, to the probability that a row is right."""
