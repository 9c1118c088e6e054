"""Frozen records, their Parquet columns, and the readers of every source's annotations."""
