"""What two readers say of captions, against what corrected mode makes of them."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.generators.captions.made_rows import configs, digest_of, made_rows
from tests.generators.captions.precision import (
    FAULTS,
    LABELS,
    NEGATIVES,
    POSITIVES,
    SETS,
    count,
    read_labels,
    summary,
)

MOST = {"hard positive: wrong, ungrammatical or unidiomatic": 0.025}
"""The largest share of rows at fault, where it is not one in fifty."""
PAGE = Path(__file__).parents[3] / "docs" / "datasets" / "captions.md"


def test_samples_have_as_many_rows_and_other_captions() -> None:
    labels = read_labels()
    assert Counter(label.set_name for label in labels) == dict.fromkeys(SETS, 400)
    assert len({(label.set_name, label.row_id) for label in labels}) == len(labels)
    for label in labels:
        assert set(label.positives) <= set(POSITIVES)
        assert set(label.negatives) <= set(NEGATIVES)


def test_labels_have_no_text_of_the_sources() -> None:
    rows = map(json.loads, LABELS.read_text(encoding="utf-8").splitlines())
    assert all(len(row["texts"]) == 16 and "caption" not in row for row in rows)


REMOVED = {"coco": {"clothing", "possession", "voice"}, "replace": set()}
"""Families of rules that are gone, of which rows were read."""


@pytest.mark.parametrize(("name", "most"), [("coco", 48), ("replace", 11)])
def test_the_rows_that_were_read_last_are_the_rows_that_are_made(
    data_folder: Path, name: str, most: int
) -> None:
    """Otherwise what is made has to be read again: another sample, drawn by the hash of ids.

    Where a removed rule fitted, or a rule rejects more since, another rewording is drawn.
    """
    read = {label.row_id: label.texts for label in read_labels() if label.set_name == name}
    made = {row.sample_id: digest_of(row) for row in made_rows(configs(data_folder)[name], read)}
    changed = {row_id for row_id, texts in read.items() if made.get(row_id) != texts}
    assert len(changed) == most
    assert changed >= {
        label.row_id
        for label in read_labels()
        if label.row_id in read and label.families[0] in REMOVED[name]
    }


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SETS)
def test_no_more_rows_are_at_fault_than_the_page_says(name: str, fault: str) -> None:
    labels = [label for label in read_labels() if label.set_name == name]
    assert count(labels, FAULTS[fault]).share < MOST.get(fault, 0.02)


def test_the_page_states_what_the_labels_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(summary(read_labels())) in page
