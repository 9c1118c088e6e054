"""SWAP: exchanges the two sides of an "and" where that keeps the meaning."""
