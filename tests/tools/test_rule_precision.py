"""The precision of rules: the shipped table is that of the labels, and says what they say."""

import json
from pathlib import Path

import pytest

from eqforge.generators.text.rule_precision import PATH, family_of, precision_of, precisions
from eqforge.schemas.sources.row_labels import read_labels
from tools import rule_precision


def test_the_shipped_table_follows_from_the_labels() -> None:
    labels = [each for each in read_labels(rule_precision.LABELS) if each.sample == "after"]
    expected = "".join(f"{line}\n" for line in rule_precision.lines(rule_precision.counted(labels)))
    assert PATH.read_text(encoding="utf-8") == expected, "run python -m tools.rule_precision"


def test_texts_are_counted_by_kind_and_family(tmp_path: Path) -> None:
    labels = [each for each in read_labels(rule_precision.LABELS) if each.sample == "before"]
    counts = rule_precision.counted(labels)
    rows = [json.loads(line) for line in rule_precision.LABELS.read_text().splitlines()]
    negated = [
        row for row in rows if row["sample"] == "before" and row["negative_kind"] == "negation"
    ]
    right = sum(row["negative"] == ["false", "false"] for row in negated)
    assert counts["hard_negative", "negation"] == (len(negated), right)
    # Few were read of some kinds; they count with their family.
    assert ("hard_positive", "swap/clause") not in counts
    swaps = sum(
        row["positive_kind"].startswith("swap/") for row in rows if row["sample"] == "before"
    )
    assert counts["hard_positive", "swap"][0] == swaps
    assert list(counts) == sorted(counts)


def test_a_kind_has_its_own_precision_or_its_familys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.tsv"
    lines = ["text\tkind\tread\tright", "hard_positive\tswap\t80\t77"]
    table.write_text("\n".join([*lines, "hard_positive\tswap/noun_phrase\t48\t46"]) + "\n")
    known = precisions(table)
    monkeypatch.setattr("eqforge.generators.text.rule_precision.precisions", lambda: known)
    own, family = (
        precision_of("hard_positive", "swap/noun_phrase"),
        precision_of("hard_positive", "swap/clause"),
    )
    assert own is not None
    assert family is not None
    assert (own.read, family.read) == (48, 80)
    assert precision_of("hard_negative", "swap") is None
    assert family_of("negation") == "negation"
    low, high = family.interval
    assert 0.89 < low < 77 / 80 < high < 0.99
