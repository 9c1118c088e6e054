"""The dataset card: what a person reads before loading the files."""

import re
from collections.abc import Iterable, Mapping

from eqforge.schemas.dataset.hugging_face import WHOLE, Configuration, configurations
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.tables.datasets import dataset_type
from eqforge.schemas.visible import code_span, in_markdown, quoted

_IMAGE_BY_NAME = "`image` is the picture's file as the source names it; no pictures are included."
_IMAGE_BY_ID = (
    "`image` is the picture's file as the source names it, and `image_id` a key into `images`, "
    "where every distinct picture stands once."
)


_OF_SPLITS = (
    f"The splits are those that the rows name. `{WHOLE}` are rows of a table that names none, or "
    "rows of several splits together; each of these has a configuration of its own as well."
)
_OF_EMPTY = (
    "Tables without rows have no configuration, because `datasets` cannot load them: {}. Other "
    "readers of Parquet can; the files have all columns."
)


def dataset_card(manifest: Manifest, splits: Mapping[str, Iterable[str]]) -> str:
    """Returns the card of a dataset as Markdown with the header that Hugging Face reads.

    Args:
      manifest: of the dataset.
      splits: by table, what its rows name as their split.
    """
    configured = configurations(manifest, splits)
    parts = [
        _header(configured),
        f"# {in_markdown(manifest.dataset)}",
        f"Built by eqforge {in_markdown(manifest.versions.get('eqforge', ''))} in "
        f"{in_markdown(manifest.mode)} mode.",
        _table_of_tables(manifest),
        _meaning(manifest),
        _books(manifest),
        _inputs(manifest),
        _loading(manifest, configured),
        "## Licence\n\nThe pictures and captions keep the licences of their sources. Check them "
        "before you pass the files on.",
    ]
    if manifest.warnings:
        parts.append(
            "## Warnings\n\n" + "\n".join(f"- {in_markdown(text)}" for text in manifest.warnings)
        )
    return "\n\n".join(parts) + "\n"


def _tables(manifest: Manifest) -> list[str]:
    """Returns the tables that have files, in the order of the manifest."""
    return [name for name, files in manifest.tables.items() if files]


def _header(configured: Iterable[Configuration]) -> str:
    lines = ["---"]
    for number, one in enumerate(configured):
        lines += ["configs:"] if number == 0 else []
        lines += [f"- config_name: {one.name}"]
        lines += ["  default: true"] if number == 0 else []
        lines += ["  data_files:", f"  - split: {quoted(one.split)}", f"    path: {one.path}"]
        lines += [f'  filters: [["split", "==", {quoted(one.only)}]]'] if one.only else []
    return "\n".join([*lines, "---"])


def in_folder(card: str, folder: str) -> str:
    """Returns the card of a dataset whose files lie in a folder below the card's."""
    return re.sub(r"^(    path: )(?=data/)", rf"\1{folder}/", card, flags=re.MULTILINE)


def _meaning(manifest: Manifest) -> str:
    """Returns what a row of the samples says."""
    kind = dataset_type(manifest.dataset)
    notes = [table.card for table in kind.tables if table.card and manifest.num_rows(table.name)]
    if "image" in kind.table("samples").schema.names:
        notes.append(_IMAGE_BY_ID if "images" in _tables(manifest) else _IMAGE_BY_NAME)
    return " ".join([kind.card, *notes])


def _table_of_tables(manifest: Manifest) -> str:
    lines = ["| table | rows | files |", "|---|---|---|"]
    lines += (
        f"| {in_markdown(name)} | {manifest.num_rows(name)} | {len(files)} |"
        for name, files in manifest.tables.items()
    )
    if manifest.unchanged is not None:
        lines += ["", f"Of the rows of `samples`, {manifest.unchanged} have `applied` false."]
    return "\n".join(lines)


def _books(manifest: Manifest) -> str:
    lines = ["## Books", "", "| stage | candidates | kept | rejected |", "|---|---|---|---|"]
    lines += (
        f"| {in_markdown(stage)} | {books.candidates} | {books.kept} | {books.rejected} |"
        for stage, books in manifest.stages.items()
    )
    lines += ["", "| stage | reason | rejected |", "|---|---|---|"]
    lines += (
        f"| {in_markdown(stage)} | {in_markdown(reason)} | {count} |"
        for stage, books in manifest.stages.items()
        for reason, count in books.reasons.items()
    )
    return "\n".join(lines)


def _inputs(manifest: Manifest) -> str:
    files = (
        f"- {code_span(file.name)}, SHA-256 {code_span(file.sha256)}" for file in manifest.inputs
    )
    return "## Made from\n\n" + "\n".join(files)


def _loading(manifest: Manifest, configured: Iterable[Configuration]) -> str:
    lines = (
        f"{one.name.replace('-', '_')} = "
        f"load_dataset(folder, {quoted(one.name)}, split={quoted(one.split)})"
        for one in configured
    )
    path = quoted(f"path/to/{manifest.dataset}")
    folder = f"folder = {path}  # or a repository of the hub"
    code = "\n".join(["from datasets import load_dataset", "", folder, *lines])
    text = f"## Loading\n\n```python\n{code}\n```\n\n{_OF_SPLITS}"
    empty = ", ".join(code_span(name) for name in _tables(manifest) if not manifest.num_rows(name))
    return f"{text}\n\n{_OF_EMPTY.format(empty)}" if empty else text
