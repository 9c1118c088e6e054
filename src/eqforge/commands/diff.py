"""`eqforge diff`: show which records and columns differ between two datasets."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from eqforge.core.console import DocumentOptions, print_document
from eqforge.core.errors import InputError
from eqforge.core.shell import Command
from eqforge.core.visible import counted, in_lines, json_text, nearest, shortened, visible
from eqforge.schemas.dataset.differences import TableDifference, compare_manifests

SHOWN_FACTS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Show which records and columns differ between two datasets or recipes.

    Records are compared by key and images by digest. Order, files, settings and versions are
    ignored. The exit status is 0 if all records are equal, 1 if some differ, and 2 if a dataset
    cannot be read.
    """

    a: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the first dataset or recipe."""

    b: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the second dataset or recipe."""

    table: tuple[str, ...] = ()
    """Tables to compare, such as samples (default: all)."""

    only: tuple[str, ...] = ()
    """Columns to compare, such as caption_0 (default: all)."""

    report: Path | None = None
    """Folder for web pages that show added, removed and changed samples with their images."""

    overwrite: bool = False
    """Replace the report in the folder if it shows a different comparison."""

    examples: int = 3
    """Number of records to list per table and kind of change. With --json, all records are
    listed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Differences between the datasets A and B.

    Attributes:
      a, b: folder or URL of the dataset.
      is_equal: whether all compared records are equal.
      tables: differences by table.
      manifest: other differences between the manifests, such as in `config.seed`.
    """

    a: str
    b: str
    is_equal: bool
    tables: dict[str, TableDifference]
    manifest: dict[str, tuple[Any, Any]]


def diff_command(arguments: Arguments) -> int:
    found = differences(arguments)
    print(in_lines(difference_lines(found)))
    if arguments.report is not None:
        page = write_report(arguments, arguments.report)
        print(f"open {visible(page)} in a browser")
    print_document(found)
    return 0 if found.is_equal else 1


def differences(arguments: Arguments) -> Difference:
    if arguments.overwrite and arguments.report is None:
        raise InputError("--overwrite works only with --report")
    if arguments.report is not None and arguments.table and "samples" not in arguments.table:
        raise InputError("--table: --report needs the samples table; add samples to --table")
    return diff_datasets(
        arguments.a,
        arguments.b,
        tables=arguments.table,
        only=arguments.only,
        examples=arguments.examples,
    )


def write_report(arguments: Arguments, output: Path) -> str:
    from eqforge.evaluation.report.differences import write_comparison
    from eqforge.schemas.dataset.recipe import FORMAT, open_dataset_or_recipe

    a, b = open_dataset_or_recipe(arguments.a), open_dataset_or_recipe(arguments.b)
    for dataset in (a, b):
        if dataset.manifest.format == FORMAT:
            raise InputError(
                f"--report: {dataset.folder} is a recipe; recipes contain no texts or images"
            )
    return write_comparison(a, b, str(output), only=arguments.only, overwrite=arguments.overwrite)


def diff_datasets(
    a: str, b: str, *, tables: tuple[str, ...] = (), only: tuple[str, ...] = (), examples: int = 3
) -> Difference:
    from eqforge.schemas.dataset.compare import compare_tables
    from eqforge.schemas.dataset.recipe import FORMAT, as_recorded, open_dataset_or_recipe

    if examples < 0:
        raise InputError(f"--examples {examples}: expected 0 or more")
    both = open_dataset_or_recipe(a), open_dataset_or_recipe(b)
    if any(dataset.manifest.format == FORMAT for dataset in both):
        both = as_recorded(both[0]), as_recorded(both[1])
    known = list(dict.fromkeys(name for dataset in both for name in dataset.manifest.tables))
    _check_known("--table", tables, known)
    names = [name for name in known if not tables or name in tables]
    columns = {name: {c for dataset in both for c in dataset.columns(name)} for name in names}
    _check_known("--only", only, sorted(set().union(*columns.values())))
    wanted = [name for name in names if not only or columns[name] & set(only)]
    found = {name: compare_tables(*both, name, only, examples) for name in wanted}
    return Difference(
        a=both[0].folder,
        b=both[1].folder,
        is_equal=all(table.is_none for table in found.values()),
        tables=found,
        manifest=compare_manifests(both[0].manifest, both[1].manifest),
    )


def _check_known(option: str, names: tuple[str, ...], known: list[str]) -> None:
    for name in names:
        if name not in known:
            kind = "table" if option == "--table" else "column"
            hint = nearest(name, known) or f"; the {kind}s are {', '.join(known)}"
            raise InputError(f"{option} {name}: neither dataset has this {kind}{hint}")


def difference_lines(found: Difference, examples: int = 50) -> Iterator[str]:
    """Yield the differences; name up to `examples` records of each kind in each table."""
    for name, table in found.tables.items():
        yield from _table_lines(name, table, examples)
    for number, (name, (a, b)) in enumerate(found.manifest.items()):
        if number == SHOWN_FACTS:
            yield f"  and {len(found.manifest) - SHOWN_FACTS:,} more; --json lists all"
            break
        yield from ["the manifests:"] * (number == 0)
        yield f"  {name}: {_value(a)} → {_value(b)}"
    verdict = "are equal in all records" if found.is_equal else "differ"
    beside = "; their manifests differ" if found.is_equal and found.manifest else ""
    yield f"{found.a} and {found.b} {verdict}{beside}"


def _table_lines(name: str, table: TableDifference, examples: int) -> Iterator[str]:
    kinds = {"added": table.added, "removed": table.removed, "changed": table.changed}
    parts = [f"{number:,} {kind}" for kind, number in kinds.items() if number]
    yield f"{name}: {', '.join([*parts, f'{table.equal:,} equal'])}"
    for side, columns in (("A", table.only_in_a), ("B", table.only_in_b)):
        if columns:
            yield f"  {counted(len(columns), 'columns')} only in {side}: {', '.join(columns)}"
    for column, (a, b) in table.types.items():
        yield f"  type of {column}: {a} → {b}"
    for column, number in table.columns.items():
        yield f"  {column}: {counted(number, 'records')} changed"
    yield from (f"  + {key}" for key in table.added_examples[:examples])
    yield from (f"  - {key}" for key in table.removed_examples[:examples])
    for record in table.changed_examples[:examples]:
        yield f"  ~ {record.key}"
        for column, (a, b) in record.columns.items():
            yield f"      {column}: {_value(a)} → {_value(b)}"


def _value(value: Any) -> str:
    return shortened(visible(json_text(value)), 100)


main = Command(
    "eqforge diff",
    Arguments,
    diff_command,
    example="eqforge diff out/first out/second",
    console=DocumentOptions,
    keeps_output=True,
)
