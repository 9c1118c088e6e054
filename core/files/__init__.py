"""Reading and writing files: storage, checked JSON and pickles, Parquet, images."""
