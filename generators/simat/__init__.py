"""SIMAT: triplets, the regions that show them, their captions and crops, and queries."""
