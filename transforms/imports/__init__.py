"""Imports of published benchmarks: checks their texts, finds their images, and makes their rows."""
