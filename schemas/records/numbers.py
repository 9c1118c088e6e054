"""Numbers that a table stores in fewer bits than Python does."""

from typing import Annotated

Int32 = Annotated[int, "int32"]
"""A whole number that a column stores in 32 bits; others have 64."""
