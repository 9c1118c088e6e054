"""The cards and Croissant descriptions of exports.

An export reuses its dataset's documents, with the author's words, for its own files. A dataset
without a card gets a short one. If licences excluded rows, the documents count the remaining rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from eqforge.core.files import storage
from eqforge.core.visible import code_span, counted, in_markdown, quoted
from eqforge.schemas.dataset import card, croissant, statements
from eqforge.schemas.dataset.manifest import MAX_BYTES
from eqforge.schemas.dataset.profile import Facts, Profile, read_facts
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.columns import IMAGE
from eqforge.schemas.tables.datasets import table_type
from eqforge.transforms.export.names import picture_columns, renamed
from eqforge.transforms.export.target import Export

DEFAULT: Final = "default"

_MOST_CARD_BYTES: Final = 4 << 20
_FENCE: Final = re.compile(r"^---\n", re.MULTILINE)
_CONFIGS: Final = re.compile(r"^configs:\n(?:[- ].*\n)*", re.MULTILINE)
_TABLES: Final = re.compile(r"^\| table \| rows \| files \|.*\n(?:\|.*\n)*", re.MULTILINE)
_LOADING: Final = re.compile(r"^## Loading\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SIZE: Final = re.compile(r"^size_categories:.*\n(?:- .*\n)*", re.MULTILINE)
_UNCHANGED: Final = re.compile(r"^(?:Of the rows|Rows) of `samples`.*\n\n?", re.MULTILINE)
_SPLITS: Final = re.compile(r"^## Splits\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LICENCES: Final = re.compile(
    r"^\| (?:part \| )?licence that the sources state \| sources \|\n(?:\|.*\n)*\n?", re.MULTILINE
)
_HEADING: Final = re.compile(r"^(?=## )|\Z", re.MULTILINE)

_OF_ALL_ROWS: Final = ("description", "rai:dataCollectionRawData")
"""Properties that describe all rows, including rows that an export may leave out."""
_STEPS: Final = "rai:dataPreprocessingProtocol"
_LIMITS: Final = "rai:dataLimitations"


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """The files of a split: its name for `datasets`, and the pattern of their paths."""

    split: str
    path: str


Configured = Mapping[str, Sequence[Files]]
"""Files by configuration, named as its table; the first is the default."""


def write_card(export: Export, configured: Configured, schema: pa.Schema | None = None) -> None:
    """Write the card of an export, unless it exists.

    Args:
      schema: the columns of the only configuration, if its files do not state them.
    """
    if export.has(card.FILE_NAME):
        return
    content = _read(export.dataset, card.FILE_NAME, _MOST_CARD_BYTES)
    if not (content.startswith("---\n") and "\n---\n" in content):
        content = _short(export)
    elif export.settings.redistributable:
        content = _card_of_part(export, content)
    front, body = _FENCE.split(content.removeprefix("---\n"), maxsplit=1)
    tables = _tables(export, configured)
    sizes = [f"| {name} | {export.dataset.manifest.num_rows(name):,} |\n" for name in tables]
    table = f"| table | rows |\n|---|---:|\n{''.join(sizes)}"
    body = _TABLES.sub(lambda _: table, body, count=1)
    loading = _loading(export, configured)
    body, replaced = _LOADING.subn(lambda _: f"{loading}\n\n", body, count=1)
    body += "" if replaced else f"\n{loading}\n"
    text = f"---\n{_CONFIGS.sub('', front)}{_front(configured, schema)}---\n{body}"
    with export.file(card.FILE_NAME) as stream:
        stream.write(text.encode())


def _front(configured: Configured, schema: pa.Schema | None) -> str:
    from huggingface_hub.utils import yaml_dump

    configs = [
        card.configuration(name, [(one.split, one.path) for one in files], is_default=number == 0)
        for number, (name, files) in enumerate(configured.items())
    ]
    data: dict[str, Any] = {"configs": configs}
    data |= {"dataset_info": {"features": _features(schema)}} if schema is not None else {}
    return yaml_dump(data, sort_keys=False, line_break="\n")


def _features(fields: Iterable[pa.Field]) -> list[dict[str, Any]]:
    return [{"name": field.name, **_kind(field.type, "dtype")} for field in fields]


def _kind(kind: pa.DataType, word: str) -> dict[str, Any]:
    if kind == IMAGE:
        return {word: "image"}
    if pa.types.is_struct(kind):
        return {"struct" if word == "dtype" else word: _features(kind)}
    if pa.types.is_list(kind):
        return _kind(kind.value_type, "list")
    return {word: "float64" if kind == pa.float64() else str(kind)}


def _read(dataset: Dataset, name: str, most_bytes: int) -> str:
    try:
        with storage.open_below(dataset.folder, name) as stream:
            return stream.read(most_bytes).decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _short(export: Export) -> str:
    manifest = export.dataset.manifest
    splits = "; ".join(f"`{each.name}`: {each.rows:,} rows" for each in export.splits)
    is_import = manifest.dataset in BENCHMARKS
    origin = "imported" if is_import else f"made in {in_markdown(manifest.mode)} mode"
    parts = [
        f"---\n---\n# {in_markdown(manifest.dataset)}",
        f"This is the table `{export.settings.table}` of a dataset that eqforge "
        f"{in_markdown(manifest.versions.get('eqforge', ''))} {origin}. The rows are in the order "
        "of their ids.",
        f"Splits: {splits}.",
        "The images and captions keep the licences of their sources. Check the licences before "
        "you redistribute the files.",
        *([in_markdown(_left_out(export))] if export.settings.redistributable else []),
    ]
    return "\n\n".join(parts) + "\n"


def _tables(export: Export, configured: Configured) -> list[str]:
    return [export.settings.table] if DEFAULT in configured else list(configured)


def _loading(export: Export, configured: Configured) -> str:
    lines = ["from datasets import load_dataset", "", 'folder = "path/to/folder"']
    for number, (name, files) in enumerate(configured.items()):
        which = "" if number == 0 else f", {quoted(name)}"
        variable = "rows" if name == DEFAULT else name
        lines += [f"{variable} = load_dataset(folder{which}, split={quoted(files[0].split)})"]
    code = "\n".join(lines)
    return f"## Loading\n\n```python\n{code}\n```\n\n{' '.join(_notes(export, configured))}"


def _notes(export: Export, configured: Configured) -> Iterator[str]:
    shown = ", ".join(code_span(name) for name in export.pictures.values())
    table, *others = _tables(export, configured)
    if shown:
        yield f"The rows of {code_span(table)} contain their images: {shown}."
    else:
        yield "The export contains no images."
    if moved := renamed(export.schema.names, export.pictures.values()):
        names = ", ".join(map(code_span, moved.values()))
        yield f"These columns contain the images' file names in the source: {names}."
    there = set(export.schema.names)
    if empty := [each for each in export.dataset.columns(table) if each not in there]:
        names = ", ".join(map(code_span, empty))
        yield f"Columns that are empty in all rows are left out: {names}."
    manifest = export.dataset.manifest
    left = [name for name in manifest.tables if name not in (table, *others, "images")]
    if shown and manifest.num_rows("images"):
        yield "The table `images` is left out, because the rows contain the images."
    if empty := [code_span(name) for name in left if not manifest.num_rows(name)]:
        yield f"Tables without rows are left out: {', '.join(empty)}."
    if full := [code_span(name) for name in left if manifest.num_rows(name)]:
        yield f"These tables of the dataset are also left out: {', '.join(full)}."


def _card_of_part(export: Export, text: str) -> str:
    """Return the card of the whole dataset, corrected for the exported rows."""
    profile = _profile_of_part(export)
    rows = export.dataset.manifest.num_rows(export.settings.table)
    text = _SIZE.sub(f"size_categories: {card.size_category(rows)}\n", text, count=1)
    text, _ = statements.with_amount(text, profile)
    text = _UNCHANGED.sub("", text, count=1)
    splits = card.splits_section(profile)
    text = _SPLITS.sub(lambda _: f"{splits}\n\n" if splits else "", text, count=1)
    licences = "".join(f"{line}\n" for line in card.licence_table(profile.facts))
    text = _LICENCES.sub(lambda _: licences, text, count=1)
    whole = "The stages, rejects and errata below describe the whole dataset."
    return _HEADING.sub(lambda _: f"{in_markdown(_left_out(export))} {whole}\n\n", text, count=1)


def _profile_of_part(export: Export) -> Profile:
    dataset = export.dataset
    facts = read_facts(dataset) if "samples" in dataset.manifest.tables else Facts()
    return Profile(manifest=dataset.manifest, facts=facts, pictures=export.count_pictures())


def _left_out(export: Export) -> str:
    counts = "; ".join(f"{name}: {rows:,}" for name, rows in export.left_out.items())
    return (
        "The export contains only rows whose sources state a licence that allows "
        f"redistribution. Rows left out, by licence: {counts or 'none'}."
    )


def write_description(
    export: Export, patterns: Mapping[str, str], schemas: Mapping[str, pa.Schema]
) -> None:
    """Write the Croissant description of existing Parquet files, unless it exists.

    Args:
      patterns: path patterns of the files of each table.
      schemas: the columns of each table, without images.
    """
    if export.has(croissant.FILE_NAME):
        return
    files = [file for file in export.files if file.path.endswith(".parquet")]
    sets = [croissant.file_set(table, pattern) for table, pattern in patterns.items()]
    records = []
    for table in patterns:
        kind = table_type(export.dataset.manifest.dataset, table)
        assert kind is not None
        pictures = picture_columns(export.dataset, table).values()
        moved = renamed(schemas[table].names, pictures)
        records.append(croissant.record_set(kind, schemas[table], moved, pictures))
    distribution = [*map(croissant.file_object, files), *sets]
    text = croissant.as_text(_properties(export), distribution, records)
    with export.file(croissant.FILE_NAME) as stream:
        stream.write(text.encode())


def _properties(export: Export) -> dict[str, Any]:
    try:
        description = croissant.read_description(
            _read(export.dataset, croissant.FILE_NAME, MAX_BYTES)
        )
    except (ValueError, RecursionError):
        description = {}
    is_part, settings = export.settings.redistributable, export.settings
    found = dict(description)
    if is_part or not description:
        profile = _profile_of_part(export)
        kept = {name: value for name, value in description.items() if name not in _OF_ALL_ROWS}
        words, has_amount = statements.with_amount(str(description.get("description", "")), profile)
        found = (
            croissant.metadata_of(profile) | kept | ({"description": words} if has_amount else {})
        )
    steps, limits = list[str](), list[str]()
    if is_part:
        rows = export.dataset.manifest.num_rows(settings.table)
        whole = counted(rows + sum(export.left_out.values()), "rows")
        steps.append(
            f"Export: {rows:,} of {whole} of {settings.table} were kept, because the licences of "
            "their sources allow redistribution."
        )
        limits.append(_left_out(export))
    if side := settings.max_side:
        scaled = f"Images whose longer side exceeded {side} pixels were scaled down to that size."
        steps.append(scaled)
    if settings.image_format != "keep":
        form = settings.image_format.upper()
        steps.append(f"Images in other formats were re-encoded as {form}.")
    for name, more in ((_STEPS, steps), (_LIMITS, limits)):
        if more:
            before = found.get(name, [])
            found[name] = [*(before if isinstance(before, list) else [before]), *more]
    return found
