"""Rewrite captions with a language model, and check each before it is accepted."""
