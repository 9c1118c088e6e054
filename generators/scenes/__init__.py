"""Scenes of everyday objects: their assets, what stands where, and captions of both."""
