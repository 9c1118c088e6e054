"""Scenes of everyday objects: assets, arrangement and captions."""
