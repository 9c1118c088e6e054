"""Further kinds of pairs, each with its contents, captions, claims and places, in its own file."""
