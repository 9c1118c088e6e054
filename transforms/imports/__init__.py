"""Imports published benchmarks: checks texts, finds images and makes rows."""
