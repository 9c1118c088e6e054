"""Models that judge whether reworded captions say what they should, and what follows from it."""
