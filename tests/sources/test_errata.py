import json
import random
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.records.judgements import Erratum
from eqforge.sources.errata import lines_of, read_errata, write_lines

DROP = Erratum(id="d/1", action="drop", reason="says the same", who="Ada", when="2026-11-23")
CORRECT = Erratum(
    id="d/2", action="correct", reason="错字", who="李", column="caption", text="一隻貓。"
)
NOTE = Erratum(id="d/1", action="note", reason="blurred", who="Ada")


def test_what_is_written_is_read_whatever_its_order(tmp_path: Path) -> None:
    errata = [DROP, CORRECT, NOTE]
    path = tmp_path / "errata.jsonl"
    for seed in range(3):
        random.Random(seed).shuffle(errata)
        assert write_lines(str(path), errata) == 3
        assert read_errata(path) == tuple(sorted(errata))
        lines = list(lines_of(errata))
        random.Random(seed).shuffle(lines)
        path.write_text("\n".join(lines))
        assert read_errata(path) == tuple(sorted(errata))


def line(**changes: str) -> str:
    return json.dumps({"id": "a", "action": "drop", "reason": "b", "who": "c"} | changes)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": "a", "action": "drop", "who": "b"}'], "line 1: the field 'reason' is missing"),
        ([line(action="erase")], "line 1: action: "),
        ([line(action="cut")], "expected 'drop', 'correct' or 'note'"),
        ([line(id=" ")], "line 1: id: expected"),
        ([line(action="correct")], "the action 'correct' needs the field 'column'"),
        ([line(text="d")], "the action 'drop' does not allow the field 'text'"),
        (
            [line(action="note", when="May")],
            "when: expected a date such as 2026-11-23, found 'May'",
        ),
        ([line()] * 2, "repeats line 1"),
        ([line(), line(reason="d")], "lines 1 and 2 both drop 'a'"),
        (
            [line(action="correct", column="x", text="y"), line()],
            "line 1 corrects 'a', but another line drops it",
        ),
        (["[1]"], "line 1: expected an object"),
        (["{"], "line 1: not valid JSON"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    path = tmp_path / "errata.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as raised:
        read_errata(path)
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
