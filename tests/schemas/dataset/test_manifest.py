from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.manifest import (
    DataFile,
    InputFile,
    Manifest,
    StageCounts,
    count_stages,
    load_manifest,
    to_json,
)

MANIFEST = Manifest(
    dataset="d",
    mode="paper",
    config={"run": {"only": [], "limit": None}, "share": 0.1},
    inputs=[InputFile(name="a.json", sha256="0" * 64)],
    versions={"eqforge": "1"},
    stages={"s": StageCounts(candidates=3, kept=1, rejected=2, reasons={"r": 2})},
    tables={
        name: [
            DataFile(path=f"data/{name}-{n}", rows=rows, num_bytes=1, sha256="1" * 64)
            for n in range(2)
        ]
        for name, rows in (("samples", 1), ("rejects", 2))
    },
    warnings=["careful"],
)


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_bytes(to_json(MANIFEST))

    assert load_manifest(str(tmp_path)) == MANIFEST
    assert to_json(load_manifest(str(tmp_path))) == to_json(MANIFEST)
    assert MANIFEST.num_rows("rejects") == 4
    assert '\n  "dataset": "d",\n' in to_json(MANIFEST).decode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not a finished dataset: it contains no dataset.json"),
        (b"", "not a dataset manifest"),
        (b"\xff\xfe", "not a dataset manifest"),
        (b'{"format": "eqforge dataset", "dataset": "d"}', "not a dataset manifest"),
        (to_json(MANIFEST).replace(b'"format_version": 1', b'"format_version": 9'), "expected"),
        (
            to_json(MANIFEST).replace(b"eqforge dataset", b"other dataset"),
            "expected the format",
        ),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "dataset.json").write_bytes(content)

    with pytest.raises(InputError, match=message):
        load_manifest(str(tmp_path))


@pytest.mark.parametrize(
    ("books", "is_balanced"),
    [
        (StageCounts(candidates=0, kept=0, rejected=0), True),
        (StageCounts(candidates=3, kept=1, rejected=2, reasons={"a": 1, "b": 1}), True),
        (StageCounts(candidates=3, kept=2, rejected=2, reasons={"a": 2}), False),
        (StageCounts(candidates=3, kept=1, rejected=2, reasons={"a": 1}), False),
    ],
)
def test_books_balance_when_every_candidate_stands_in_them_once(
    books: StageCounts, is_balanced: bool
) -> None:
    assert books.is_balanced() == is_balanced


def test_closing_takes_every_stage_in_order_even_those_nothing_entered() -> None:
    found = count_stages(
        ("a", "b", "c"), {"c": (5, 4), "a": (2, 1)}, {"c": {"z": 1}, "a": {"y": 1}}
    )

    assert list(found) == ["a", "b", "c"]
    assert found["b"] == StageCounts(candidates=0, kept=0, rejected=0)
    assert found["c"] == StageCounts(candidates=5, kept=4, rejected=1, reasons={"z": 1})
