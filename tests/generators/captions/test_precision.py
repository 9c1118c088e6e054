"""What two readers say of captions, against what corrected mode makes of them."""

import json
from collections import Counter
from pathlib import Path

from tests.generators.captions.precision import (
    LABELS,
    NEGATIVES,
    POSITIVES,
    SAMPLES,
    SETS,
    read_labels,
    tables,
)

PAGE = Path(__file__).parents[3] / "docs" / "captions.md"


def test_labels_are_of_as_many_rows_before_and_after_and_of_other_captions() -> None:
    labels = read_labels()
    assert Counter((label.set_name, label.sample) for label in labels) == {
        (name, sample): 400 for name in SETS for sample in SAMPLES
    }
    assert len({(label.set_name, label.row_id) for label in labels}) == len(labels)
    for label in labels:
        assert set(label.positives) <= set(POSITIVES)
        assert set(label.negatives) <= set(NEGATIVES)


def test_labels_have_no_text_of_the_sources() -> None:
    rows = map(json.loads, LABELS.read_text(encoding="utf-8").splitlines())
    assert all(len(row["texts"]) == 16 and "caption" not in row for row in rows)


def test_the_page_states_what_the_labels_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(part in page for part in tables().split("\n\n"))
