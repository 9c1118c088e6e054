"""Numbers of which a table keeps fewer bits than Python has."""

from typing import Annotated

Int32 = Annotated[int, "int32"]
"""A whole number that a column keeps in 32 bits; others have 64."""
