"""The columns of every table: a change of one is a change of the datasets' form."""

import re
from pathlib import Path

import pytest

from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import TYPES, table_type

PINNED = (Path(__file__).parent / "columns.txt").read_text(encoding="utf-8")
COLUMNS = dict(re.findall(r"^# (.+)\n((?:[^#\n].*\n)+)", PINNED, re.M))


@pytest.mark.parametrize("name", COLUMNS)
def test_the_columns_of_a_table_are_those_that_datasets_have(name: str) -> None:
    found = table_type(*name.split())

    assert found is not None
    assert found.schema.to_string() + "\n" == COLUMNS[name]


@pytest.mark.parametrize("dataset", TYPES)
def test_a_description_names_columns_and_tables_that_there_are(dataset: str) -> None:
    kind = TYPES[dataset]
    for table in kind.tables:
        named = {*table.key, *table.references, *(table.counted or ())}
        assert named <= set(table.schema.names)
        assert all(len(kind.table(other).key) == 1 for other in table.references.values())
    assert {kind.table("samples").key, kind.table("rejects").key} == {
        ("sample_id",),
        ("candidate_id", "stage"),
    }


def test_every_column_that_is_called_a_key_of_a_picture_is_one() -> None:
    for table in (table for kind in TYPES.values() for table in kind.tables):
        called = {
            name for name in table.schema.names if re.fullmatch(r"(image|mask)_(\d_)?id", name)
        }
        assert called <= {*table.key, *table.references}


def test_every_column_of_every_table_is_pinned() -> None:
    pinned = [table_type(*name.split()) for name in COLUMNS]
    tables = [table for kind in TYPES.values() for table in kind.tables]
    assert all(table in pinned for table in tables)


def test_each_published_benchmark_says_how_to_cite_it() -> None:
    for name, known in BENCHMARKS.items():
        assert bool(known.citation) != name.startswith("own-"), name
        assert known.citation.count("{") == known.citation.count("}"), name
        for field in ("title", "author", "booktitle", "year") if known.citation else ():
            assert f"  {field:<9} = {{" in known.citation, (name, field)
