"""What runs a pipeline beyond this process: Flink and Prism, their parts and their settings."""
