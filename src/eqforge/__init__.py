"""Construct benchmarks of minimal pairs for vision-language models."""

import os

__version__ = "0.1.0"

# torch's matrix products on a processor come from MKL, which reads this at its first one: a row's
# last bits are then the same wherever in a batch it stands.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
