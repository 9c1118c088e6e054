"""SWAP: exchanges the two sides of an "and" if that keeps the meaning."""
