"""Exact frames of videos: decoded, encoded, stored."""
