"""The record sets of a Croissant description: a table's, and those that join it with pictures.

The fields of a table follow from its record, and say what the record's docstring says. As
mlcroissant (1.1) joins two sources at a time, `samples_joined_1` adds the first image to a row, and
`samples_joined`, made of it, the second. Masks are left to be joined by their ids: with each join
more, mlcroissant takes many times as long to read the description.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, Final, get_args, get_type_hints

import pyarrow as pa

from eqforge.schemas.tables.columns import IMAGE
from eqforge.schemas.tables.description import PictureSuffix, TableType
from eqforge.schemas.tables.meanings import meanings, summary
from eqforge.schemas.tables.pairs import IMAGES_TABLE

JOINED: Final = "joined"
PICTURE: Final = "the picture"


def files_of(table: str) -> str:
    """Returns the id of the set of a table's files."""
    return f"{table}-files"


def record_set(
    kind: TableType,
    schema: pa.Schema | None = None,
    called: Mapping[str, str] = MappingProxyType({}),
    pictures: Iterable[str] = (),
) -> dict[str, Any]:
    """Returns the record set of a table, with a field for each column.

    Args:
      kind: the table.
      schema: its columns, where its files do not have those of its record.
      called: what columns are called in the files, where not as in the record.
      pictures: columns of pictures that the files have beside them.
    """
    keys = [{"@id": f"{kind.name}/{name}"} for name in kind.key]
    return {
        "@type": "cr:RecordSet",
        "@id": kind.name,
        "name": kind.name,
        "description": summary(kind.record),
        "key": keys[0] if len(keys) == 1 else keys,
        "field": [
            *_fields(kind, kind.schema if schema is None else schema, called),
            *(_picture(kind.name, name) for name in pictures),
        ],
    }


def _picture(table: str, column: str) -> dict[str, Any]:
    source = _source(table, column) | {"transform": {"jsonPath": "bytes"}}
    return _field(f"{table}/{column}", "sc:ImageObject", PICTURE, source)


def _fields(
    kind: TableType, schema: pa.Schema, called: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    said, hints = meanings(kind.record), get_type_hints(kind.record, include_extras=True)
    names = {
        "image" if hints[each.name] == PictureSuffix else each.name: each.name
        for each in fields(kind.record)
    }
    for column in schema:
        name, here = names.get(column.name, column.name), called.get(column.name, column.name)
        about = said.get(name, "")
        place, source = f"{kind.name}/{here}", _source(kind.name, here)
        if column.type == IMAGE:
            yield _picture(kind.name, here)
        elif parts := list(_parts(column.type, "")):
            own = _meanings_below(hints.get(name))
            below = [
                _field(
                    f"{place}/{path.replace('.', '/')}",
                    _data_type(part),
                    own.get(path, ""),
                    _source(kind.name, here) | {"transform": {"jsonPath": path}},
                )
                for path, part in parts
            ]
            yield _field(place, None, about, None, column.type) | {"subField": below}
        else:
            yield _field(place, _data_type(column.type), about, source, column.type)


def _source(table: str, column: str) -> dict[str, Any]:
    return {"fileSet": {"@id": files_of(table)}, "extract": {"column": column}}


def _field(
    place: str,
    kind: str | None,
    about: str,
    source: dict[str, Any] | None,
    column: pa.DataType | None = None,
) -> dict[str, Any]:
    found: dict[str, Any] = {"@type": "cr:Field", "@id": place, "name": place}
    found |= {"description": about} if about else {}
    found |= {"dataType": kind} if kind else {}
    if column is not None and pa.types.is_list(column):
        found |= {"isArray": True, "arrayShape": "-1"}
    return found | ({"source": source} if source else {})


def _parts(kind: pa.DataType, path: str) -> Iterator[tuple[str, pa.DataType]]:
    """Yields the plain values of a struct, or of a list of them, by their paths."""
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if not pa.types.is_struct(inner):
        if path:
            yield path, kind
        return
    for below in inner:
        yield from _parts(below.type, f"{path}.{below.name}".removeprefix("."))


def _meanings_below(hint: Any) -> dict[str, str]:
    """Returns what is said of the parts of a nested record, or of those of a list, by path."""
    if not (isinstance(hint, type) and is_dataclass(hint)):
        return next(filter(None, map(_meanings_below, get_args(hint))), {})
    found = dict(meanings(hint))
    for name, below in get_type_hints(hint).items():
        found |= {f"{name}.{path}": text for path, text in _meanings_below(below).items()}
    return found


def _data_type(kind: pa.DataType) -> str:
    inner = kind.value_type if pa.types.is_list(kind) else kind
    for is_of, name in (
        (pa.types.is_boolean, "sc:Boolean"),
        (pa.types.is_integer, "sc:Integer"),
        (pa.types.is_floating, "sc:Float"),
    ):
        if is_of(inner):
            return name
    return "sc:Text"


def joined_sets(kind: TableType, rows_of: Callable[[str], int]) -> Iterator[dict[str, Any]]:
    """Yields the record sets that join the rows of a table with the images they name.

    Args:
      kind: the table.
      rows_of: returns the number of rows of a table.
    """
    columns = [column for column, other in kind.references.items() if other == IMAGES_TABLE.name]
    if not rows_of(IMAGES_TABLE.name):
        return
    carried = [column.name for column in kind.schema if not list(_parts(column.type, ""))]
    whole, before = f"{kind.name}_{JOINED}", kind.name
    key, image = (f"{IMAGES_TABLE.name}/{name}" for name in (IMAGES_TABLE.key[0], "image"))
    for number, column in enumerate(columns, start=1):
        name = whole if number == len(columns) else f"{whole}_{number}"
        shown = column.removesuffix("_id")
        shown = shown if shown not in kind.schema.names else f"{shown}_picture"
        source = {"field": {"@id": image}}
        fields_ = [_carried(f"{name}/{each}", f"{before}/{each}", kind) for each in carried]
        fields_[carried.index(column)]["references"] = {"field": {"@id": key}}
        yield {
            "@type": "cr:RecordSet",
            "@id": name,
            "name": name,
            "description": f"The rows of {before}, joined with the image that {column} names.",
            "key": {"@id": f"{name}/{kind.key[0]}"},
            "field": [*fields_, _field(f"{name}/{shown}", "sc:ImageObject", PICTURE, source)],
        }
        carried, before = [*carried, shown], name


def _carried(place: str, before: str, kind: TableType) -> dict[str, Any]:
    """Returns a field of a joined record set that stands in the one before it too."""
    column, source = place.rpartition("/")[2], {"field": {"@id": before}}
    if column not in kind.schema.names:
        return _field(place, "sc:ImageObject", PICTURE, source)
    of_column = kind.schema.field(column).type
    about = meanings(kind.record).get(column, "")
    return _field(place, _data_type(of_column), about, source, of_column)
