"""Pairs of frames of videos: propose, extract, pair, match (EqBen, section 4.1)."""
