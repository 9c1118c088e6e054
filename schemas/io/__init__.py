"""Files in and out: storage, checked JSON and pickles, Parquet, pictures."""
