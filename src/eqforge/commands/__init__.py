"""Commands that do not build a single dataset: verify, inspect, export, demo and others."""
