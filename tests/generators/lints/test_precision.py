"""Findings in published sets, against the verdicts of their reader."""

import json
from collections import Counter
from pathlib import Path

import pytest

from eqforge.generators.text.lints.lint import KINDS
from tests.generators.lints.precision import (
    COUNTS,
    LABELS,
    Found,
    counts,
    judged,
    key_of,
    read_labels,
    table,
)
from tests.generators.lints.published_sets import WHOLE, findings_of

PRECISION = 0.95
LEAST_RECALL = 0.95
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "reasons.md"


@pytest.fixture(scope="module")
def found(data_folder: Path) -> Found:
    return findings_of(data_folder)


def test_every_rule_at_error_or_warning_is_right_where_a_reader_judged_it(found: Found) -> None:
    for rule, verdicts in judged(found, "judging").items():
        if KINDS[rule][0] != "note" and verdicts.total():
            assert verdicts[True] / verdicts.total() >= PRECISION, (rule, verdicts)


def test_findings_that_a_reader_called_true_are_still_found(found: Found) -> None:
    there = {key_of(name, finding) for name, findings in found.items() for finding in findings}
    true = [label for label in read_labels() if label.verdict]
    found_of = Counter(label.rule for label in true if label.key in there)
    for rule, labelled in Counter(label.rule for label in true).items():
        assert found_of[rule] / labelled >= LEAST_RECALL, (rule, found_of[rule], labelled)


def test_no_finding_is_new(found: Found) -> None:
    """New findings have to be read: label them, then write the counts again."""
    assert counts(found) == json.loads(COUNTS.read_text())


def test_of_small_sets_every_error_and_warning_is_labelled(found: Found) -> None:
    labelled = {label.key for label in read_labels()}
    unread = [
        (name, finding)
        for name in sorted(WHOLE)
        for finding in found[name]
        if finding.severity != "note" and key_of(name, finding) not in labelled
    ]
    assert unread == []


def test_the_page_states_what_the_labels_say(found: Found) -> None:
    assert "\n".join(table(found)) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("vl_checklist/Attribute/vg/color", {"positive": 6}),
        ("vl_checklist/Attribute/vg/state", {"positive": 1}),
        ("vl_checklist/Relation/vg/spatial", {"negative": 112}),
        ("vl_checklist/Object/Size/vg_size/vg_obj_small", {}),
    ],
)
def test_words_damaged_in_vl_checklist_are_found_and_no_others(
    found: Found, name: str, damaged: dict[str, int]
) -> None:
    """Every one of these was read: "person" became "persunder", "covered" "covebrown"."""
    assert Counter(f.field for f in found[name] if f.kind == "edit_inside_word") == damaged


def test_labels_are_many_of_many_sets_and_say_why() -> None:
    labels = read_labels()
    assert all(json.loads(line)["reason"] for line in LABELS.read_text().splitlines())
    assert len({label.key for label in labels}) == len(labels) >= 300
    assert {label.rule for label in labels} <= set(KINDS)
    assert len({label.key[0].partition("/")[0] for label in labels}) >= 5
