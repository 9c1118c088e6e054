"""The commands that are no dataset: verify, inspect, export, demo and so on."""
