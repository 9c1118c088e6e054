"""Files of published benchmarks; each module reads one family, and writes it where possible."""
