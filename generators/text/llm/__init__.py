"""Captions rewritten by a language model, each checked before it is accepted."""
