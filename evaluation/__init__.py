"""The separate GPU stage: scoring, metrics, losses and plots over Parquet, without Beam."""
