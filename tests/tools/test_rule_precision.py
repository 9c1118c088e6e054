"""The precision of rules: the shipped table is that of the labels, and says what they say."""

import json
from pathlib import Path

import pytest
from scipy.stats import beta  # type: ignore[import-untyped]

from eqforge.core.errors import InputError
from eqforge.generators.text.rule_precision import (
    PATH,
    PRIOR,
    by_family,
    family_of,
    labelled,
    precision_of,
)
from tools import rule_precision
from tools.row_labels import read_labels

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "language-models.md"


def test_the_shipped_table_follows_from_the_labels(tmp_path: Path) -> None:
    counts = rule_precision.counted(read_labels(rule_precision.LABELS))
    expected = "".join(f"{line}\n" for line in rule_precision.lines(counts))
    assert PATH.read_text(encoding="utf-8") == expected, "run make docs"
    # And from their readings alone, whatever their order.
    mixed = tmp_path / "labels.jsonl"
    lines = rule_precision.LABELS.read_text(encoding="utf-8").splitlines(keepends=True)
    mixed.write_text("".join(lines[::-1]), encoding="utf-8")
    assert list(rule_precision.counted(read_labels(mixed)).items()) == list(counts.items())


def test_the_page_states_what_the_table_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    gone = {"clothing", "possession", "voice"}  # rules that were read and then removed
    for (part, family), (read, right) in by_family(labelled()).items():
        row = f"| {part.replace('_', ' ')} | `{family}` | {read:,} | {right:,} |"
        assert (row in page) == (family not in gone), "run make docs"


def test_texts_are_counted_by_kind_and_family() -> None:
    counts = rule_precision.counted(read_labels(rule_precision.LABELS))
    rows = [*map(json.loads, rule_precision.LABELS.read_text().splitlines())]
    negated = [row for row in rows if row.get("negative_kind") == "negation"]
    right = sum(row["negative"] == ["false", "false"] for row in negated)
    assert counts["hard_negative", "negation"] == (len(negated), right)
    swaps = sum(row["positive_kind"].startswith("swap/") for row in rows)
    assert by_family(counts)["hard_positive", "swap"][0] == swaps
    texts = sum(name in row for row in rows for name in ("positive", "negative"))
    assert sum(read for read, _ in counts.values()) == texts
    assert list(counts) == sorted(counts)


def test_a_sample_that_was_not_read_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="no label is of a sample 'next'"):
        rule_precision.counted(read_labels(rule_precision.LABELS), ["next"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.tsv"
    rows = ["swap/noun_phrase\t48\t46", "swap/clause\t2\t2", "color/colored\t150\t148"]
    lines = ["text\tkind\tread\tright", *(f"hard_positive\t{row}" for row in rows)]
    path.write_text("".join(f"{line}\n" for line in [*lines, "hard_negative\tnegation\t5\t5"]))
    return path


def test_what_few_were_read_of_is_drawn_towards_its_family(table: Path) -> None:
    known = {
        kind: precision_of("hard_positive", kind, table)
        for kind in ("swap", "swap/noun_phrase", "swap/clause", "swap/adjective")
    }
    family, many, few, none = (found for found in known.values() if found is not None)
    # By hand: 196.5 of 201 are right of all, and so 10 of them stand before what was read of swaps.
    share = (PRIOR * 196.5 / 201 + 48) / (PRIOR + 50)
    assert family.share == pytest.approx(share)
    assert many.share == pytest.approx((PRIOR * share + 46) / (PRIOR + 48))
    assert few.share == pytest.approx((PRIOR * share + 2) / (PRIOR + 2))
    assert none.share == pytest.approx(share)
    low, high = many.interval
    expected = beta.interval(0.95, PRIOR * share + 46, PRIOR * (1 - share) + 2)
    assert (low, high) == pytest.approx(expected)
    # The less was read, the wider.
    width = [high - low for low, high in (each.interval for each in (family, many, few, none))]
    assert width == sorted(width)


def test_all_of_a_few_that_are_right_are_no_certainty(table: Path) -> None:
    found = precision_of("hard_negative", "negation", table)
    assert found is not None
    assert 0.9 < found.share < 1
    assert found.interval[0] < 0.85
    assert found.interval[1] <= 1


def test_of_a_family_that_was_not_read_nothing_is_known(table: Path) -> None:
    assert precision_of("hard_negative", "swap", table) is None
    assert precision_of("hard_positive", "llm/swap", table) is None
    assert precision_of("original", "", table) is None
    assert family_of("negation") == "negation"
