"""The report of a dataset: a folder of static pages, opened from disk, that shows every row."""
