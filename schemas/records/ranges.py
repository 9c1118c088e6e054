"""The ranges of columns: builds write only values in them, and `eqforge verify` rejects others.

`RULES` of a record say by column whether it fits the others of its row.
"""

import sys
from typing import Annotated

from msgspec import Meta

Int32 = Annotated[int, "int32"]
"""A whole number that a column stores in 32 bits; others have 64."""

Whole = Annotated[int, Meta(ge=0)]
Whole32 = Annotated[Int32, Meta(ge=0)]
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Positive = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Share = Annotated[float, Meta(ge=0, le=1)]
Similarity = Annotated[float, Meta(ge=-1, le=1)]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(min_length=1)]
