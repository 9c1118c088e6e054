"""Pairs of phrases of which either can stand for the other, and the rules that exchange them."""
