"""The cards of exports: what a person reads, and where Hugging Face finds the splits.

An export has the card of its dataset, with its own files, sizes and way of loading in it, and what
differs where rows were left out. Where there is none, a short one takes its place.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from eqforge.core.files import storage
from eqforge.core.visible import code_span, in_markdown, quoted
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.columns import IMAGE
from eqforge.transforms.export.names import renamed
from eqforge.transforms.export.part import card_of_part, left_out
from eqforge.transforms.export.target import Export

CARD: Final = "README.md"
DEFAULT: Final = "default"
"""The configuration of an export of one table."""

_MOST_CARD_BYTES: Final = 4 << 20
_FENCE: Final = re.compile(r"^---\n", re.MULTILINE)
_CONFIGS: Final = re.compile(r"^configs:\n(?:[- ].*\n)*", re.MULTILINE)
_SIZES: Final = re.compile(r"^\| table \| rows \| files \|.*\n(?:\|.*\n)*", re.MULTILINE)
_LOADING: Final = re.compile(r"^## Loading\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)

Configured = Mapping[str, Sequence["Files"]]
"""The files of each configuration, which is called as its table is; the first is the default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """The files of a split: what `datasets` calls it, and the pattern of their paths."""

    split: str
    path: str


def header(configured: Mapping[str, Iterable[Files]], schema: pa.Schema | None = None) -> str:
    """Returns the part of a card that Hugging Face reads; the first configuration is the default.

    Args:
      configured: the files of each configuration.
      schema: the columns of the only configuration, where its files do not say them.
    """
    lines = ["---", "configs:"]
    for number, (name, files) in enumerate(configured.items()):
        lines += [f"- config_name: {quoted(name)}"]
        lines += ["  default: true"] if number == 0 else []
        lines += ["  data_files:"]
        for one in files:
            lines += [f"  - split: {quoted(one.split)}", f"    path: {quoted(one.path)}"]
    if schema is not None:
        lines += ["dataset_info:", "  features:", *_features(schema, "  ")]
    return "\n".join([*lines, "---"])


def _features(fields: Iterable[pa.Field], margin: str) -> Iterator[str]:
    """Yields columns as lines of YAML, as `datasets` writes them."""
    for field in fields:
        yield f"{margin}- name: {quoted(field.name)}"
        yield from _kind(field.type, f"{margin}  ", "dtype")


def _kind(kind: pa.DataType, margin: str, word: str) -> Iterator[str]:
    if kind == IMAGE:
        yield f"{margin}{word}: image"
    elif pa.types.is_struct(kind):
        yield f"{margin}{'struct' if word == 'dtype' else word}:"
        yield from _features(kind, margin)
    elif pa.types.is_list(kind):
        yield from _kind(kind.value_type, margin, "list")
    else:
        yield f"{margin}{word}: {'float64' if kind == pa.float64() else kind}"


def write_card(export: Export, configured: Configured, schema: pa.Schema | None = None) -> None:
    """Writes the card of an export, unless it is there; see header."""
    if not export.has(CARD):
        with export.file(CARD) as stream:
            stream.write(_card(export, configured, schema).encode())


def _card(export: Export, configured: Configured, schema: pa.Schema | None) -> str:
    """Returns the dataset's own card, with these files and how to load them."""
    own = _own(export.dataset)
    if own and export.settings.redistributable:
        own = card_of_part(export, own)
    front, body = _FENCE.split((own or _short(export)).removeprefix("---\n"), maxsplit=1)
    files = header(configured, schema).removeprefix("---\n").removesuffix("---")
    body = _SIZES.sub(lambda _: _sizes(export, configured), body, count=1)
    loading = _loading(export, configured)
    body, replaced = _LOADING.subn(lambda _: f"{loading}\n\n", body, count=1)
    return f"---\n{_CONFIGS.sub('', front)}{files}---\n{body}" + (
        "" if replaced else f"\n{loading}\n"
    )


def _own(dataset: Dataset) -> str:
    """Returns the card that the dataset was built with; empty if it has none that can be read."""
    try:
        with storage.open_below(dataset.folder, CARD) as stream:
            text = stream.read(_MOST_CARD_BYTES).decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    return text if text.startswith("---\n") and "\n---\n" in text else ""


def _short(export: Export) -> str:
    """Returns a card of what is known without the dataset's own."""
    manifest = export.dataset.manifest
    called = [f"`{each.name}`: {each.rows:,} rows" for each in export.splits]
    is_import = manifest.dataset in BENCHMARKS
    made = "imported" if is_import else f"made in {in_markdown(manifest.mode)} mode"
    parts = [
        f"---\n---\n# {in_markdown(manifest.dataset)}",
        f"The table `{export.settings.table}` of a dataset that eqforge "
        f"{in_markdown(manifest.versions.get('eqforge', ''))} {made}, one row after another in the "
        "order of their ids.",
        f"Splits: {'; '.join(called)}.",
        "The pictures and captions keep the licences of their sources. Check them before you pass "
        "the files on.",
        *([in_markdown(left_out(export))] if export.settings.redistributable else []),
    ]
    return "\n\n".join(parts) + "\n"


def _tables(export: Export, configured: Configured) -> list[str]:
    """Returns the tables that are here."""
    return [export.settings.table] if DEFAULT in configured else list(configured)


def _sizes(export: Export, configured: Configured) -> str:
    """Returns the rows of the tables that are here; files and bytes were those of the dataset."""
    rows = (
        f"| {name} | {export.dataset.manifest.num_rows(name):,} |"
        for name in _tables(export, configured)
    )
    return "\n".join(["| table | rows |", "|---|---:|", *rows, ""])


def _loading(export: Export, configured: Configured) -> str:
    lines = ["from datasets import load_dataset", "", 'folder = "path/to/folder"']
    for number, (name, files) in enumerate(configured.items()):
        which = "" if number == 0 else f", {quoted(name)}"
        called = "rows" if name == DEFAULT else name
        lines += [f"{called} = load_dataset(folder{which}, split={quoted(files[0].split)})"]
    code = "\n".join(lines)
    return f"## Loading\n\n```python\n{code}\n```\n\n{' '.join(_notes(export, configured))}"


def _notes(export: Export, configured: Configured) -> Iterator[str]:
    """Yields what somebody who loads the files should know of them."""
    shown = ", ".join(code_span(name) for name in export.pictures.values())
    table, *others = _tables(export, configured)
    if shown:
        yield f"The rows of {code_span(table)} have their pictures: {shown}."
    else:
        yield "There are no pictures."
    columns = export.dataset.columns(export.settings.table)
    if moved := renamed(columns, export.pictures.values()):
        names = ", ".join(map(code_span, moved.values()))
        yield f"What their files are called in the source stands in {names}."
    manifest = export.dataset.manifest
    left = [name for name in manifest.tables if name not in (table, *others, "images")]
    if manifest.num_rows("images"):
        yield "The table `images` is left out: its pictures stand in the rows."
    if empty := [code_span(name) for name in left if not manifest.num_rows(name)]:
        yield f"Tables without rows are left out: {', '.join(empty)}."
    if full := [code_span(name) for name in left if manifest.num_rows(name)]:
        yield f"So are {', '.join(full)}, which the dataset has, too."
