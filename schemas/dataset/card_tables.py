"""What the card says of the tables: how large they are, and what the samples' columns mean."""

from eqforge.core.visible import code_span, in_markdown
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.tables.datasets import table_type
from eqforge.schemas.tables.meanings import meanings


def sizes(manifest: Manifest) -> str:
    """Returns a line for each table: its rows, files and bytes."""
    lines = ["| table | rows | files | bytes |", "|---|---:|---:|---:|"]
    lines += (
        f"| {in_markdown(name)} | {manifest.num_rows(name):,} | {len(files):,} | "
        f"{sum(file.num_bytes for file in files):,} |"
        for name, files in manifest.tables.items()
    )
    if manifest.unchanged is not None:
        lines += [
            "",
            f"Of the rows of `samples`, {manifest.unchanged:,} have `words_changed` false.",
        ]
    return "\n".join(lines)


def columns(manifest: Manifest) -> str:
    """Returns what the columns of the samples mean; empty where this version does not know."""
    kind = table_type(manifest.dataset, "samples")
    if kind is None:
        return ""
    said = meanings(kind.record)
    lines = ["## Columns of `samples`", "", "| column | meaning |", "|---|---|"]
    for name in kind.schema.names:
        meaning = said.get(name, "").replace("|", r"\|")
        lines += [f"| {code_span(name)} | {meaning} |"]
    return "\n".join(lines)
