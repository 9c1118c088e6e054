"""Rewordings of a caption that say exactly what it says."""
