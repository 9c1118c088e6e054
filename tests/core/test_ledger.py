from dataclasses import dataclass
from pathlib import Path

import pytest

from eqforge.core.ledger import Ledger


@dataclass(frozen=True)
class Result:
    values: tuple[float, ...]
    note: str | None = None


def ledger(folder: Path, step: str = "step", basis: object = "basis") -> Ledger:
    return Ledger(root=str(folder), step=step, basis=basis)


@pytest.mark.parametrize(
    ("other", "inputs"),
    [({"step": "other"}, ["a"]), ({"basis": {"version": 2}}, ["a"]), ({}, ["b"]), ({}, [["a"]])],
)
def test_another_step_basis_or_input_is_not_known(
    tmp_path: Path, other: dict[str, object], inputs: object
) -> None:
    ledger(tmp_path).write(["a"], Result(values=(1.0,)))

    assert ledger(tmp_path).recall(["a"], Result) == Result(values=(1.0,))
    assert ledger(tmp_path, **other).recall(inputs, Result) is None  # type: ignore[arg-type]


def test_a_result_that_is_not_final_is_not_written_down(tmp_path: Path) -> None:
    results = iter([Result(values=(), note="failed"), Result(values=(1.0,))])

    found = [
        ledger(tmp_path).remember(
            "a", Result, lambda: next(results), lambda result: result.note is None
        )
        for _ in range(3)
    ]

    assert [result.note for result in found] == ["failed", None, None]


@pytest.mark.parametrize("damage", [b"", b'{"values": [1', b'{"other": 1}', b"\xff"])
def test_a_damaged_note_counts_as_none(tmp_path: Path, damage: bytes) -> None:
    ledger(tmp_path).write("a", Result(values=(1.0,)))
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(damage)

    assert ledger(tmp_path).recall("a", Result) is None
    assert ledger(tmp_path).remember("a", Result, lambda: Result(values=())) == Result(values=())
