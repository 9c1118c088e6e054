"""Makes pairs of video frames: propose, extract, pair, match (EqBen, section 4.1)."""
