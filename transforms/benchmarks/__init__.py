"""Imports published benchmarks: finds their images, and makes their rows."""
