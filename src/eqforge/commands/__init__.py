"""The commands that build no single dataset: verify, inspect, export, demo and so on."""
