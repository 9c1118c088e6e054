"""The papers' plots of tables and scores, as reproducible files."""
