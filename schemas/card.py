"""The dataset card: what a person reads before loading the files."""

from eqforge.schemas.manifest import Manifest

_HEAD = """---
configs:
- config_name: samples
  data_files: data/samples-*.parquet
  default: true
- config_name: images
  data_files: data/images-*.parquet
- config_name: rejects
  data_files: data/rejects-*.parquet
---
"""


def dataset_card(manifest: Manifest) -> str:
    """Returns the card of a dataset as Markdown with the header that Hugging Face reads."""
    parts = [
        _HEAD + f"# {manifest.dataset}",
        f"Minimal pairs, built by eqforge {manifest.versions.get('eqforge', '')} "
        f"in {manifest.mode} mode.",
        _table_of_tables(manifest),
        "In `samples`, `caption_0` describes the image `image_0_id` and `caption_1` the image "
        "`image_1_id`; the two ids are keys into `images`, where every distinct picture stands "
        "once. `origin_0` and `origin_1` say where each picture comes from.",
        _books(manifest),
        _inputs(manifest),
        _loading(),
        "## Licence\n\nThe pictures and captions keep the licences of their sources; "
        "`origin_0.licence` holds what the source states. Check them before you pass the files on.",
    ]
    if manifest.warnings:
        parts.append("## Warnings\n\n" + "\n".join(f"- {text}" for text in manifest.warnings))
    return "\n\n".join(parts) + "\n"


def _table_of_tables(manifest: Manifest) -> str:
    lines = ["| table | rows | files |", "|---|---|---|"]
    lines += (
        f"| {name} | {manifest.num_rows(name)} | {len(files)} |"
        for name, files in manifest.tables.items()
    )
    return "\n".join(lines)


def _books(manifest: Manifest) -> str:
    lines = ["## Books", "", "| stage | candidates | kept | rejected |", "|---|---|---|---|"]
    lines += (
        f"| {stage} | {books.candidates} | {books.kept} | {books.rejected} |"
        for stage, books in manifest.stages.items()
    )
    lines += ["", "| stage | reason | rejected |", "|---|---|---|"]
    lines += (
        f"| {stage} | {reason} | {count} |"
        for stage, books in manifest.stages.items()
        for reason, count in books.reasons.items()
    )
    return "\n".join(lines)


def _inputs(manifest: Manifest) -> str:
    files = (f"- `{file.name}`, SHA-256 `{file.sha256}`" for file in manifest.inputs)
    return "## Made from\n\n" + "\n".join(files)


def _loading() -> str:
    return (
        "## Loading\n\n```python\n"
        "from datasets import load_dataset\n\n"
        'samples = load_dataset("parquet", data_files="data/samples-*.parquet", split="train")\n'
        'images = load_dataset("parquet", data_files="data/images-*.parquet", split="train")\n'
        "```"
    )
