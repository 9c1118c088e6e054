"""VLUE's items of five tasks and the lints of their annotations."""
