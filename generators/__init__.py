"""New content from a specification and a seed: captions, edits, scenes; without Beam."""
