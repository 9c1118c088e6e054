"""The papers' plots, of tables and scores, as files that are the same every time."""
