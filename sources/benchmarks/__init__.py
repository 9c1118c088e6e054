"""The files of published benchmarks: each module reads one family, and writes it where it can."""
