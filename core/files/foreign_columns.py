"""What is read of the columns of Arrow and Parquet files of any origin.

Pictures, videos and sound stand there as a structure of bytes and path; the path is what is read.
Columns of other bytes are left out.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from eqforge.core.files.untrusted import Unreadable

MEDIA: Final = frozenset(("bytes", "path"))

_PLAIN: Final = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, pa.types.is_null),
    *(pa.types.is_integer, pa.types.is_floating),
)
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_BINARY: Final = (
    *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
    pa.types.is_binary_view,
)


def wanted(field: pa.Field) -> Sequence[str]:
    """Returns what is read of a column: all of it, the path of a picture, or nothing."""
    if is_media(field.type):
        return [f"{field.name}.path"]
    _check_depth(field.type)
    return [] if _holds_bytes(field.type) else [field.name]


def is_media(kind: pa.DataType) -> bool:
    """Tells whether a column holds pictures, videos or sound: a structure of bytes and path."""
    return pa.types.is_struct(kind) and {field.name for field in kind} == MEDIA


def _holds_bytes(kind: pa.DataType) -> bool:
    if any(test(kind) for test in _BINARY):
        return True
    return any(_holds_bytes(kind.field(number).type) for number in range(kind.num_fields))


def _check_depth(kind: pa.DataType, depth: int = 0) -> None:
    if depth > 8:
        raise Unreadable("a column of lists within lists, too deep to read")
    for number in range(kind.num_fields):
        _check_depth(kind.field(number).type, depth + 1)


def without_bytes(array: pa.Array) -> pa.Array:
    """Returns a column with the paths of its pictures alone.

    Raises:
      Unreadable: it is of a type that `datasets` does not write.
    """
    if not is_media(array.type):
        _check_kind(array.type)
        return array
    paths = array.field("path")
    _check_kind(paths.type)
    return pa.StructArray.from_arrays([paths], ["path"], mask=array.is_null())


def _check_kind(kind: pa.DataType) -> None:
    """Refuses types of which many values may share few bytes, such as views and dictionaries.

    Raises:
      Unreadable: the type is such a one.
    """
    if any(test(kind) for test in (*_LISTS, pa.types.is_struct)):
        for number in range(kind.num_fields):
            _check_kind(kind.field(number).type)
    elif not (any(test(kind) for test in _PLAIN) or _is_printed(kind)):
        raise Unreadable(f"a column of {str(kind)[:80]}, which `datasets` does not write")


def _is_printed(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) or pa.types.is_decimal(kind)


def count_values(array: pa.Array) -> int:
    """Returns how many values there are, those of lists included."""
    if pa.types.is_struct(array.type):
        fields = (array.field(number) for number in range(array.type.num_fields))
        return len(array) + sum(map(count_values, fields))
    is_list = any(test(array.type) for test in _LISTS)
    return len(array) + (count_values(array.flatten()) if is_list else 0)
