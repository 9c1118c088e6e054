"""The rows of the tables of datasets, and the Parquet columns they become."""
