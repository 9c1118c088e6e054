"""The Arrow columns of a record, derived from its type annotations."""

import functools
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from eqforge.schemas.records.values import SCHEMA_VERSION, PictureSuffix

IMAGE: Final = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
"""What Hugging Face shows as a picture."""

_PLAIN: Final = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}


def required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def list_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of a list without nulls in it."""
    return pa.list_(required("item", kind))


@functools.cache
def schema_of(record: type) -> pa.Schema:
    """Return the columns of a record: one for each field, nullable if it may be None.

    A tuple of any length becomes a list without nulls, and a nested record a struct. `Annotated`
    gives the name of another Arrow type, or the whole column, and the range of the values.
    """
    return pa.schema(_columns(record))


def _columns(record: type) -> list[pa.Field]:
    hints = get_type_hints(record, include_extras=True)
    return [_column(field.name, hints[field.name]) for field in fields(record)]


def _column(name: str, hint: Any) -> pa.Field:
    arguments = get_args(hint)
    if hint == PictureSuffix:
        return pa.field("image", IMAGE)
    if get_origin(hint) in (Union, UnionType):
        (only,) = (each for each in arguments if each is not NoneType)
        return pa.field(name, arrow_type(only))
    return required(name, arrow_type(hint))


def arrow_type(hint: Any) -> pa.DataType:
    """Return the Arrow type for a type annotation that does not include None."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Annotated:
        alias = next((each for each in arguments[1:] if isinstance(each, str)), None)
        return arrow_type(arguments[0]) if alias is None else pa.type_for_alias(alias)
    if origin is tuple and arguments[1:] == (...,):
        return list_of(arrow_type(arguments[0]))
    if origin is Literal or (isinstance(hint, type) and issubclass(hint, StrEnum)):
        return pa.string()
    if isinstance(hint, type) and is_dataclass(hint):
        return pa.struct(_columns(hint))
    raise TypeError(f"no column type for {hint}")


def holds_pictures(schema: pa.Schema) -> bool:
    return "image" in schema.names and schema.field("image").type == IMAGE


def with_metadata(schema: pa.Schema, metadata: Mapping[str, str]) -> pa.Schema:
    """Return the schema with its version, Hugging Face's features and the given entries."""
    features = {field.name: _feature(field.type) for field in schema}
    entries = {
        "schema_version": SCHEMA_VERSION,
        "huggingface": json.dumps({"info": {"features": features}}, sort_keys=True),
    }
    return schema.with_metadata(entries | dict(metadata))


def _feature(kind: pa.DataType) -> Any:
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}


def is_of_type(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return True if values of a type can be read as another, whatever may be null in them."""
    if pa.types.is_struct(expected):
        names = [field.name for field in expected]
        return (
            pa.types.is_struct(found)
            and sorted(field.name for field in found) == sorted(names)
            and all(is_of_type(found.field(n).type, expected.field(n).type) for n in names)
        )
    if pa.types.is_list(expected):
        return pa.types.is_list(found) and is_of_type(found.value_type, expected.value_type)
    same = bool(found.equals(expected)) or pa.types.is_null(found)
    return same or (pa.types.is_integer(found) and pa.types.is_integer(expected))


def lacks_values(array: pa.Array, expected: pa.Field) -> bool:
    """Return True if required values are null, also below lists and structs."""
    if array.null_count and not expected.nullable:
        return True
    values = array.drop_null()
    if pa.types.is_struct(array.type):
        fields = zip(array.type, values.flatten(), strict=True)
        return any(lacks_values(one, expected.type.field(field.name)) for field, one in fields)
    if pa.types.is_list(array.type):
        return lacks_values(values.flatten(), expected.type.value_field)
    return False
