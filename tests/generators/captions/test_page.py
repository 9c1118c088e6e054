"""The examples of the page on captions are what the rules make."""

import random
import re
from pathlib import Path
from typing import get_args

import pytest

from eqforge.generators.text.coordination.swap import Swap, swap_coordination
from eqforge.generators.text.edits import EditedText, apply_edits
from eqforge.generators.text.hard_negatives.lexicon import NegativeKind
from eqforge.generators.text.hard_negatives.make import make_hard_negative
from eqforge.generators.text.rewordings.rules import FAMILIES
from tests.generators.rewordings.reworded import analysed

PAGE = Path(__file__).parents[3] / "docs" / "datasets" / "captions.md"
ROW = re.compile(r"^\| `(\w+)` \| ([A-Z][^|]+) \| ([A-Z0-9][^|]+) \| [\d.]+% \|$", re.M)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
KINDS = get_args(NegativeKind)
REWORDED = [row for row in ROWS if row[0] not in KINDS]
NEGATED = [row for row in ROWS if row[0] in KINDS]
DRAWS = 300


def test_every_family_and_every_kind_has_an_example() -> None:
    assert {family for family, _, _ in REWORDED} == {*FAMILIES, "swap"}
    assert {kind for kind, _, _ in NEGATED} == set(KINDS)


@pytest.mark.parametrize(("family", "caption", "hard_positive"), REWORDED)
def test_an_example_is_what_a_rule_of_its_family_makes(
    family: str, caption: str, hard_positive: str
) -> None:
    analysis = analysed(caption)
    made = [
        apply_edits(caption, edits).text
        for find in FAMILIES.get(family, {}).values()
        for edits in find(analysis)
    ]
    swap = swap_coordination(analysis)
    if family == "swap" and isinstance(swap, Swap):
        made.append(swap.edited.text)
    assert hard_positive in made


@pytest.mark.parametrize(("kind", "caption", "hard_negative"), NEGATED)
def test_a_hard_negative_is_one_that_a_seed_draws(
    kind: NegativeKind, caption: str, hard_negative: str
) -> None:
    analysis = analysed(caption)
    drawn = (make_hard_negative(analysis, kind, random.Random(seed)) for seed in range(DRAWS))
    assert hard_negative in {made.text for made in drawn if isinstance(made, EditedText)}
