"""Pictures that stand in the rows of Parquet and Arrow files, as `datasets` saves them.

A row is read without them; what stands in their place says where they are.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The place of a picture in a table.

    Attributes:
      name: the picture as the table names it, or a digest of its bytes where it does not.
      file: path of the table.
      column: that holds the picture.
      row: its number in the file, from 0.
    """

    name: str
    file: str
    column: str
    row: int

    def read(self) -> bytes:
        """Returns the bytes of the picture.

        Raises:
          InputError: the table cannot be read.
        """
        from eqforge.core.files.foreign_rows import read_cell

        return read_cell(Path(self.file), self.column, self.row)


def with_names(row: Any) -> Any:
    """Returns a row with the names of its pictures in place of their places."""
    if not isinstance(row, dict):
        return row
    return {name: v.name if isinstance(v, Cell) else v for name, v in row.items()}
