"""Runs pipelines on engines outside this process, Flink and Prism."""
