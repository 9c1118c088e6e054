"""Writes the tables of the pages that follow from the descriptions of datasets.

Such a table stands between two comments; the first names it:

    <!-- made: datasets in FOLDER -->  every dataset, with links to pages in a folder
    <!-- made: benchmarks -->          every published benchmark that can be imported
    <!-- made: tables of datasets -->  which tables some have beside those of all
    <!-- made: eq-sd samples -->       the columns of a dataset's table
    <!-- made: Origin -->              the parts of a column that is a record
    <!-- made: reasons of stages -->   why candidates are rejected
    <!-- made: documents -->           what commands print with `--json`
    <!-- made: rules of lint -->       what `eqforge lint` looks for
    <!-- made: questions of judges --> what judges are asked of reworded captions
    <!-- made: precision of rules -->  how often the rules that edit captions are right
    <!-- made: protocols -->           what reviewers can be asked
    <!-- made: rules of review -->     what follows from several votes
    <!-- made: rules of texts -->      what is asked of texts that reviewers write
    <!-- end -->
"""

import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from eqforge.evaluation.review.protocols import TEXT_RULES, protocols
from eqforge.evaluation.review.settings import RULES
from eqforge.generators.text.lints.lint import KINDS
from eqforge.generators.text.rewordings.rules import FAMILIES
from eqforge.generators.text.rule_precision import by_family, labelled, precision_of
from eqforge.schemas.records.judgements import QUESTIONS
from eqforge.schemas.records.values import PictureSuffix
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.columns import arrow_type
from eqforge.schemas.tables.datasets import (
    DATASETS,
    ENTRY,
    TABLE_TYPES,
    TYPES,
    meanings,
    summary,
    table_type,
)
from eqforge.schemas.tables.description import TableType
from scripts import documents, reasons

ROOT = Path(__file__).parents[1]
PAGES = (
    *("README.md", "docs/datasets/index.md", "docs/guides/importing.md"),
    *("docs/guides/language-models.md", "docs/guides/review.md"),
    *("docs/reference/tables.md", "docs/reference/reasons.md", "docs/reference/python.md"),
)
PAGE_OF = {
    **{name: f"eqben-videos.md#{name}" for name in ("eq-youcook2", "eq-gebc", "eq-ag")},
    "training-captions": "captions.md#build-training-captions",
}
"""Where a dataset is described that has no page of its own name, below docs/datasets."""
ANCHORS = {
    "PairSample": "video-pairs",
    "RenderedSample": "generated-pairs",
    "PerturbedCaption": "retrieval-perturbations",
    "VlueSample": "vlue",
    "BenchmarkPair": "imported-pairs",
    "BenchmarkFoil": "captions-and-foils",
}
"""The headings of docs/reference/tables.md that explain columns of several tables, by record."""
COMMON = ("samples", "images", "rejects")
WIDTH = 120
MADE = re.compile(r"(?<=<!-- made: )(.+?)( -->\n).*?(?=<!-- end -->)", re.S)


def page(text: str) -> str:
    """Returns a page with its tables regenerated."""
    return MADE.sub(lambda found: f"{found[1]}{found[2]}{made(found[1])}\n", text)


def made(name: str) -> str:
    """Returns the Markdown of a table by its name."""
    if "datasets in " in name:
        return "\n".join(_datasets(Path(name.partition("datasets in ")[2])))
    if name == "benchmarks":
        return "\n".join(_benchmarks())
    if name == "tables of datasets":
        return "\n".join(_tables())
    if name == "reasons of stages":
        return "\n".join(reasons.lines())
    if name == "documents":
        return "\n".join(documents.lines())
    if name == "rules of lint":
        rules = (f"| `{rule}` | {level} | {text} |" for rule, (level, text) in KINDS.items())
        return "\n".join(("| rule | level | a finding says |\n|---|---|---|", *rules))
    if name == "questions of judges":
        asked = (f"| `{name}` | {each.text} |" for name, each in QUESTIONS.items())
        return "\n".join(("| question | a high probability means |\n|---|---|", *asked))
    if name == "precision of rules":
        return "\n".join(_precisions())
    if name == "protocols":
        return "\n".join(_protocols())
    if name == "rules of texts":
        return "\n".join(f"* `{rule}`: {text}" for rule, text in TEXT_RULES.items())
    if name == "rules of review":
        return "\n".join(f"* `{rule}`: {text}" for rule, text in RULES.items())
    dataset, _, table = name.partition(" ")
    if table:
        return "\n".join(_table(table_type(dataset, table)))
    found = {part.__name__: part for table in TABLE_TYPES for part in parts(table.record)}
    return "\n".join(_columns(found[name]))


def _precisions() -> Iterator[str]:
    yield "| text | family | judged | right | probability | 95% interval |"
    yield "|---|---|---:|---:|---:|---|"
    for (part, family), (read, right) in by_family(labelled()).items():
        if part == "hard_positive" and family not in (*FAMILIES, "swap"):
            continue  # a rule that no longer exists
        found = precision_of(part, family)
        assert found is not None  # it is of the table
        low, high = found.interval
        numbers = f"{read:,} | {right:,} | {found.share:.3f} | {low:.3f} to {high:.3f}"
        yield f"| {part.replace('_', ' ')} | `{family}` | {numbers} |"


def _protocols() -> Iterator[str]:
    yield "| protocol | items | question | source |\n|---|---|---|---|"
    for name, known in protocols().items():
        source = known.source or "eqforge's own"
        yield f"| `{name}` | {known.of} | {known.question} | {source} |"


def _datasets(folder: Path) -> Iterator[str]:
    yield "| dataset | what it holds | made from |\n|---|---|---|"
    for name, known in DATASETS.items():
        held = known.summary.removesuffix(".")
        link = f"[{name}]({folder / PAGE_OF.get(name, f'{name}.md')})"
        yield f"| {link} | {held} | {known.made_from} |"


def _benchmarks() -> Iterator[str]:
    yield "| benchmark | what it holds | SOURCE | rows | licence of its texts |"
    yield "|---|---|---|---|---|"
    for name, known in BENCHMARKS.items():
        if not name.startswith("own-"):
            record = known.type.table("samples").record.__name__
            rows = f"{record.removeprefix('Benchmark').lower()}s"
            parts = (f"`{name}`", known.summary.removesuffix("."), known.made_from, rows)
            yield f"| {' | '.join(parts)} | {known.licence or 'none stated'} |"


def _tables() -> Iterator[str]:
    yield "| datasets | tables in addition to `samples`, `images` and `rejects` |\n|---|---|"
    datasets: defaultdict[str, list[str]] = defaultdict(list)
    for name, kind in TYPES.items():
        others = [each.name for each in kind.tables if each.name not in COMMON]
        datasets[", ".join(f"`{each}`" for each in others)].append(f"`{name}`")
    for tables, names in datasets.items():
        if tables:
            yield f"| {', '.join(names)} | {tables} |"


def _table(table: TableType) -> Iterator[str]:
    names = [f"`{n}`" for n, kind in TYPES.items() if table in kind.tables]
    where = "all" if len(names) == len(TYPES) else ", ".join(names)
    said = meanings(table.record)
    columns: defaultdict[str, list[str]] = defaultdict(list)
    for column, other in table.references.items():
        if f"`{other}`" not in said[column]:
            columns[other].append(f"`{column}`")
    keys = "; ".join(f"{', '.join(found)} → `{other}`" for other, found in columns.items())
    key = ", ".join(f"`{n}`" for n in table.key)
    text = f"{summary(table.record)} Datasets: {where}. Key: {key}."
    text += f" References: {keys}." if keys else ""
    yield textwrap.fill(text, WIDTH, break_on_hyphens=False)
    yield ""
    yield from _columns(table.record)


def _columns(record: type) -> Iterator[str]:
    """Yields a line for each field, or for fields of the same type and meaning.

    Fields that mean the same in another record are named in a sentence that links to it.
    """
    hints, said = get_type_hints(record, include_extras=True), meanings(record)
    lines: dict[tuple[str, str], list[str]] = {}
    shared: defaultdict[str, list[str]] = defaultdict(list)
    for each in fields(record):
        if origin := _origin(record, each.name):
            shared[origin].append(f"`{each.name}`")
            continue
        name = "image" if hints[each.name] == PictureSuffix else each.name
        meaning = "the image" if name != each.name else said.get(each.name, "").replace("*", r"\*")
        lines.setdefault((_type(hints[each.name]), meaning), []).append(f"`{name}`")
    for origin, names in shared.items():
        name, listed = ANCHORS[origin].replace("-", " "), ", ".join(names).rsplit(", ", 1)
        yield f"See [{name}](#{ANCHORS[origin]}) for {' and '.join(listed)}.\n"
    yield "| column | type | meaning |\n|---|---|---|"
    for (kind, meaning), names in lines.items():
        yield f"| {', '.join(names)} | {kind} | {meaning} |"


def _origin(record: type, column: str) -> str:
    """Returns the name of the record that explains a column; empty for the record itself."""
    for names, meaning in ENTRY.findall(inspect.cleandoc(record.__doc__ or "")):
        if column in re.split(r",\s+", names) and (
            same := re.fullmatch(r"as\s+in\s+(\w+)\.\s*", meaning)
        ):
            (other,) = {each.record for each in TABLE_TYPES if each.record.__name__ == same[1]}
            return _origin(other, column) or same[1]
    return ""


def _type(hint: Any) -> str:
    said = get_args(hint)
    if hint == PictureSuffix:
        return "struct of `bytes` and `path`"
    if NoneType in said:
        return f"{_type(said[0])} or null"
    if get_origin(hint) is tuple:
        return f"list of {_type(said[0])}"
    if is_dataclass(hint):
        if _is_explained(hint):
            return f"[{hint.__name__}](#{hint.__name__.lower()})"
        return f"struct of {', '.join(f'`{each.name}`' for each in fields(hint))}"
    return str(arrow_type(hint))


def _is_explained(record: type) -> bool:
    return "Attributes:" in (record.__doc__ or "")


def parts(hint: Any) -> Iterator[type]:
    """Yields the records below an annotation whose fields are explained."""
    if isinstance(hint, type) and is_dataclass(hint):
        if _is_explained(hint):
            yield hint
        for below in get_type_hints(hint).values():
            yield from parts(below)
    for below in get_args(hint):
        yield from parts(below)


if __name__ == "__main__":
    for name in PAGES:
        path = ROOT / name
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
