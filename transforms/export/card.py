"""The cards of exports: what a person reads, and where Hugging Face finds the splits."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from eqforge.schemas.tables.columns import IMAGE
from eqforge.schemas.visible import in_markdown, quoted
from eqforge.transforms.export.target import Export

CARD: Final = "README.md"


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


def flat_card(export: Export, files: list[Files], schema: pa.Schema | None = None) -> str:
    """Returns the card of a flat table; see header."""
    manifest = export.dataset.manifest
    called = [f"`{each.name}`: {each.rows:,} rows" for each in export.splits]
    shown = ", ".join(f"`{name}`" for name in export.pictures.values())
    parts = [
        header({"default": files}, schema),
        f"# {in_markdown(manifest.dataset)}",
        f"The table `{export.settings.table}` of a dataset that eqforge "
        f"{in_markdown(manifest.versions.get('eqforge', ''))} made in "
        f"{in_markdown(manifest.mode)} mode, one row after another in the order of their ids.",
        f"Splits: {'; '.join(called)}.",
        f"Pictures: {shown}, from the images that {_ids(export)} name."
        if shown
        else "There are no pictures.",
        "```python\nfrom datasets import load_dataset\n\n"
        f'rows = load_dataset("path/to/folder", split={quoted(files[0].split)})\n```',
        "The pictures and captions keep the licences of their sources. Check them before you pass "
        "the files on.",
        *_licences(export),
    ]
    return "\n\n".join(parts) + "\n"


def _licences(export: Export) -> list[str]:
    """Returns what a card says of the rows that were left out for their licences."""
    if not export.settings.redistributable:
        return []
    said = "; ".join(f"{in_markdown(name)}: {n:,}" for name, n in export.left_out.items())
    return [
        "Only rows are here whose sources state licences that allow to pass them on. Left out, by "
        f"licence: {said or 'none'}."
    ]


def _ids(export: Export) -> str:
    return ", ".join(f"`{name}`" for name in export.pictures)
