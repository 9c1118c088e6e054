"""The description of a dataset in Croissant 1.1, with its extension for responsible AI.

There is a record set per table, and one more, with images, per table that names images.

Source: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html and
  https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, Final, get_args, get_type_hints

import pyarrow as pa

from eqforge.core.visible import json_text
from eqforge.schemas.dataset import statements
from eqforge.schemas.dataset.manifest import DataFile, Manifest
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.records.values import PictureSuffix
from eqforge.schemas.tables.columns import IMAGE
from eqforge.schemas.tables.datasets import meanings, summary, table_type
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE

FILE_NAME: Final = "croissant.json"
CONFORMS_TO: Final = (
    "http://mlcommons.org/croissant/1.1",
    "http://mlcommons.org/croissant/RAI/1.0",
)
PARQUET: Final = "application/x-parquet"

_OF_FILES: Final = ("@context", "@type", "conformsTo", "distribution", "recordSet")
_OF_CROISSANT: Final = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field"),
    *("fileProperty", "fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset"),
    *("jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
    *("repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
)
_CONTEXT: Final[Mapping[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{name: f"cr:{name}" for name in _OF_CROISSANT},
}


def croissant(profile: Profile) -> str:
    tables = list(_tables(profile.manifest))
    files = [file for kind in tables for file in profile.manifest.tables[kind.name]]
    sets = [file_set(kind.name, f"data/{kind.name}-*.parquet") for kind in tables]
    records = [
        *map(record_set, tables),
        *(one for kind in tables for one in joined_sets(kind, profile.manifest.num_rows)),
    ]
    return as_text(metadata_of(profile), [*map(file_object, files), *sets], records)


def metadata_of(profile: Profile) -> dict[str, Any]:
    return _about(profile) | _responsibility(profile)


def as_text(
    metadata: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    records: Sequence[dict[str, Any]],
) -> str:
    """Return a description as JSON-LD: metadata, files and file sets, and record sets."""
    found = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        **metadata,
        "distribution": list(files),
        "recordSet": list(records),
    }
    return json_text(found, indent=1) + "\n"


def read_description(text: str) -> dict[str, Any]:
    """Return a description's metadata of the whole dataset, including its author's."""
    description = json.loads(text)
    if not isinstance(description, dict):
        raise ValueError("it is not a JSON object")
    return {name: value for name, value in description.items() if name not in _OF_FILES}


def described_files(text: str) -> dict[str, str]:
    description = json.loads(text)
    parts = description.get("distribution") if isinstance(description, dict) else None
    if not isinstance(parts, list):
        raise ValueError("it has no 'distribution' list")
    objects = [part for part in parts if isinstance(part, dict) and "contentUrl" in part]
    return {str(part["contentUrl"]): str(part.get("sha256")) for part in objects}


def listed_files(manifest: Manifest) -> dict[str, str]:
    """Return the SHA-256 of each file that a dataset's description lists, by path."""
    files = (file for kind in _tables(manifest) for file in manifest.tables[kind.name])
    return {file.path: file.sha256 for file in files}


def _tables(manifest: Manifest) -> Iterator[TableType]:
    for name in manifest.tables:
        kind = table_type(manifest.dataset, name)
        if kind is not None and manifest.num_rows(name):
            yield kind


def _about(profile: Profile) -> dict[str, Any]:
    about = profile.about
    is_single = re.fullmatch(r"[\w.+-]+", about.licence)
    licence = f"https://spdx.org/licenses/{about.licence}.html" if is_single else about.licence
    properties = {
        "name": statements.title(profile),
        "description": statements.description(profile),
        "url": about.homepage,
        "license": about.licence_url or licence,
        "version": about.version,
        "datePublished": about.published.isoformat() if about.published else "",
        "citeAs": statements.citation(profile),
        "creator": [
            {
                "@type": "sc:Organization" if author.is_organisation else "sc:Person",
                "name": author.name,
                **({"affiliation": author.affiliation} if author.affiliation else {}),
                **({"url": author.url} if author.url else {}),
            }
            for author in about.authors
        ],
        "keywords": list(statements.tags(profile)),
        "inLanguage": list(statements.languages(profile)),
    }
    return {name: value for name, value in properties.items() if value}


def _responsibility(profile: Profile) -> dict[str, Any]:
    about = profile.about
    inputs = [f"{file.name} (SHA-256 {file.sha256})" for file in profile.manifest.inputs]
    licences = list(statements.licences(profile))
    raw = [f"Made from {', '.join(inputs)}."] if inputs else []
    raw += [f"Licences of the sources: {'; '.join(licences)}."] if licences else []
    is_generated = statements.is_generated(profile)
    properties = {
        "dataCollection": statements.collection(profile),
        "dataCollectionType": [
            "Software Collection" if is_generated else "Secondary Data Analysis"
        ],
        "dataCollectionMissingData": statements.missing(profile),
        "dataCollectionRawData": " ".join(raw),
        "dataPreprocessingProtocol": list(statements.steps(profile)),
        "dataAnnotationProtocol": [statements.annotation(profile)],
        "machineAnnotationTools": list(statements.tools(profile)),
        "dataUseCases": list(statements.uses(profile)),
        "dataBiases": list(statements.biases(profile)),
        "dataLimitations": list(statements.limitations(profile)),
        "dataSocialImpact": about.social_impact,
        "personalSensitiveInformation": list(statements.personal_information(profile)),
        "dataReleaseMaintenancePlan": about.maintenance,
    }
    return {f"rai:{name}": value for name, value in properties.items() if value}


def file_object(file: DataFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path.rpartition("/")[2],
        "contentUrl": file.path,
        "contentSize": f"{file.num_bytes} B",
        "encodingFormat": PARQUET,
        "sha256": file.sha256,
    }


def file_set(table: str, pattern: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": files_of(table),
        "name": files_of(table),
        "encodingFormat": PARQUET,
        "includes": pattern,
    }


JOINED: Final = "joined"
PICTURE: Final = "the picture"


def files_of(table: str) -> str:
    return f"{table}-files"


def record_set(
    kind: TableType,
    schema: pa.Schema | None = None,
    column_names: Mapping[str, str] = MappingProxyType({}),
    pictures: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the record set of a table, with a field for each column.

    Args:
      schema: its columns, if its files differ from its record.
      column_names: names in the files, if they differ from the record's.
      pictures: additional image columns in the files.
    """
    keys = [{"@id": f"{kind.name}/{name}"} for name in kind.key]
    return {
        "@type": "cr:RecordSet",
        "@id": kind.name,
        "name": kind.name,
        "description": summary(kind.record),
        "key": keys[0] if len(keys) == 1 else keys,
        "field": [
            *_fields(kind, kind.schema if schema is None else schema, column_names),
            *(_picture(kind.name, name) for name in pictures),
        ],
    }


def _picture(table: str, column: str) -> dict[str, Any]:
    source = _source(table, column) | {"transform": {"jsonPath": "bytes"}}
    return _field(f"{table}/{column}", "sc:ImageObject", PICTURE, source)


def _fields(
    kind: TableType, schema: pa.Schema, column_names: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    descriptions, hints = meanings(kind.record), get_type_hints(kind.record, include_extras=True)
    names = {
        "image" if hints[each.name] == PictureSuffix else each.name: each.name
        for each in fields(kind.record)
    }
    for column in schema:
        name = names.get(column.name, column.name)
        column_name = column_names.get(column.name, column.name)
        about = descriptions.get(name, "")
        place, source = f"{kind.name}/{column_name}", _source(kind.name, column_name)
        if column.type == IMAGE:
            yield _picture(kind.name, column_name)
        elif parts := list(_parts(column.type, "")):
            sub_meanings = _meanings_below(hints.get(name))
            below = [
                _field(
                    f"{place}/{path.replace('.', '/')}",
                    _data_type(part),
                    sub_meanings.get(path, ""),
                    _source(kind.name, column_name) | {"transform": {"jsonPath": path}},
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
    """Yield the plain values of a struct, or of a list of them, by their paths."""
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if not pa.types.is_struct(inner):
        if path:
            yield path, kind
        return
    for below in inner:
        yield from _parts(below.type, f"{path}.{below.name}".removeprefix("."))


def _meanings_below(hint: Any) -> dict[str, str]:
    """Return the descriptions of the fields of nested records, or of lists of them, by path."""
    if not (isinstance(hint, type) and is_dataclass(hint)):
        return next(filter(None, map(_meanings_below, get_args(hint))), {})
    found = dict(meanings(hint))
    for name, below in get_type_hints(hint).items():
        found |= {f"{name}.{path}": text for path, text in _meanings_below(below).items()}
    return found


def _data_type(kind: pa.DataType) -> str:
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_boolean(inner):
        return "sc:Boolean"
    if pa.types.is_integer(inner):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(inner) else "sc:Text"


def joined_sets(kind: TableType, rows_of: Callable[[str], int]) -> Iterator[dict[str, Any]]:
    """Yield record sets that join the rows of a table with the images they name."""
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
        fields_ = [_carried(name, before, each, kind) for each in carried]
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


def _carried(name: str, before: str, column: str, kind: TableType) -> dict[str, Any]:
    place, source = f"{name}/{column}", {"field": {"@id": f"{before}/{column}"}}
    if column not in kind.schema.names:
        return _field(place, "sc:ImageObject", PICTURE, source)
    of_column = kind.schema.field(column).type
    about = meanings(kind.record).get(column, "")
    return _field(place, _data_type(of_column), about, source, of_column)
