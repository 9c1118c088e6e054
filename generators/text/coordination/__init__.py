"""SWAP: exchanges what stands on the two sides of "and" where that keeps the meaning."""
