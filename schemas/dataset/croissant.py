"""The description of a dataset in Croissant 1.1, with its extension for responsible AI.

A record set stands for each table, and for each that names images one more, with the images.

Source: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html and
  https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from eqforge.core.visible import json_text
from eqforge.schemas.dataset import statements
from eqforge.schemas.dataset.about import Author
from eqforge.schemas.dataset.croissant_records import files_of, joined_sets, record_set
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.tables.datasets import table_type
from eqforge.schemas.tables.description import TableType

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


class AnyFile(Protocol):
    """A file of a dataset, or of an export of it."""

    @property
    def path(self) -> str:
        """Its path below the folder."""

    @property
    def num_bytes(self) -> int:
        """Its length."""

    @property
    def sha256(self) -> str:
        """Its digest."""


def croissant(profile: Profile) -> str:
    """Returns the description of a dataset as JSON-LD, whose files lie beside it."""
    tables = list(_tables(profile.manifest))
    files = [file for kind in tables for file in profile.manifest.tables[kind.name]]
    sets = [file_set(kind.name, f"data/{kind.name}-*.parquet") for kind in tables]
    records = [
        *map(record_set, tables),
        *(one for kind in tables for one in joined_sets(kind, profile.manifest.num_rows)),
    ]
    return as_text(said_of(profile), [*map(file_object, files), *sets], records)


def said_of(profile: Profile) -> dict[str, Any]:
    """Returns what a description says of a dataset as a whole."""
    return _about(profile) | _responsibility(profile)


def as_text(
    said: Mapping[str, Any], files: Sequence[Mapping[str, Any]], records: Sequence[dict[str, Any]]
) -> str:
    """Returns a description as JSON-LD.

    Args:
      said: of the whole; see said_of.
      files: the files and the sets of them.
      records: the record sets.
    """
    found = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        **said,
        "distribution": list(files),
        "recordSet": list(records),
    }
    return json_text(found, indent=1) + "\n"


def read_said(text: str) -> dict[str, Any]:
    """Returns what a description says of a dataset as a whole, with what its author says.

    Raises:
      ValueError: it is no such description.
    """
    said = json.loads(text)
    if not isinstance(said, dict):
        raise ValueError("it is no object")
    return {name: value for name, value in said.items() if name not in _OF_FILES}


def in_folder(text: str, folder: str) -> str:
    """Returns the description of a dataset whose files lie in a folder below it."""
    pattern = r'^( *"(?:contentUrl|includes)": ")(?=data/)'
    return re.sub(pattern, rf"\1{folder}/", text, flags=re.MULTILINE)


def described_files(text: str) -> dict[str, str]:
    """Returns the SHA-256 that a description states for each file, by its path.

    Raises:
      ValueError: it is no such description.
    """
    said = json.loads(text)
    parts = said.get("distribution") if isinstance(said, dict) else None
    if not isinstance(parts, list):
        raise ValueError("it has no list 'distribution'")
    objects = [part for part in parts if isinstance(part, dict) and "contentUrl" in part]
    return {str(part["contentUrl"]): str(part.get("sha256")) for part in objects}


def listed_files(manifest: Manifest) -> dict[str, str]:
    """Returns the SHA-256 of each file that a description of a dataset has, by its path."""
    files = (file for kind in _tables(manifest) for file in manifest.tables[kind.name])
    return {file.path: file.sha256 for file in files}


def _tables(manifest: Manifest) -> Iterator[TableType]:
    """Yields the tables that have rows and are known."""
    for name in manifest.tables:
        kind = table_type(manifest.dataset, name)
        if kind is not None and manifest.num_rows(name):
            yield kind


def _about(profile: Profile) -> dict[str, Any]:
    about = profile.about
    said = {
        "name": statements.title(profile),
        "description": statements.description(profile),
        "url": about.homepage,
        "license": about.licence_url or _licence_url(about.licence),
        "version": about.version,
        "datePublished": about.published.isoformat() if about.published else "",
        "citeAs": statements.citation(profile),
        "creator": [_creator(author) for author in about.authors],
        "keywords": list(statements.tags(profile)),
        "inLanguage": list(statements.languages(profile)),
    }
    return {name: value for name, value in said.items() if value}


def _licence_url(licence: str) -> str:
    is_single = re.fullmatch(r"[\w.+-]+", licence)
    return f"https://spdx.org/licenses/{licence}.html" if is_single else licence


def _creator(author: Author) -> dict[str, Any]:
    kind = "sc:Organization" if author.is_organisation else "sc:Person"
    found: dict[str, Any] = {"@type": kind, "name": author.name}
    found |= {"affiliation": author.affiliation} if author.affiliation else {}
    return found | ({"url": author.url} if author.url else {})


def _responsibility(profile: Profile) -> dict[str, Any]:
    """Returns the properties of the extension for responsible AI that something is known for."""
    about = profile.about
    said = {
        "dataCollection": statements.collection(profile),
        "dataCollectionType": [statements.collection_type(profile)],
        "dataCollectionMissingData": statements.missing(profile),
        "dataCollectionRawData": _raw(profile),
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
    return {f"rai:{name}": value for name, value in said.items() if value}


def _raw(profile: Profile) -> str:
    """Returns what it was made from, with the licences that the sources state."""
    inputs = [f"{file.name} (SHA-256 {file.sha256})" for file in profile.manifest.inputs]
    licences = list(statements.licences(profile))
    parts = [f"Made from {', '.join(inputs)}."] if inputs else []
    parts += [f"Licences of the sources: {'; '.join(licences)}."] if licences else []
    return " ".join(parts)


def file_object(file: AnyFile) -> dict[str, Any]:
    """Returns a file of a description."""
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
    """Returns the set of a table's files, which match a pattern."""
    return {
        "@type": "cr:FileSet",
        "@id": files_of(table),
        "name": files_of(table),
        "encodingFormat": PARQUET,
        "includes": pattern,
    }
