"""The examples of the page on captions are what the rules make."""

import re
from pathlib import Path

import pytest

from eqforge.generators.text.coordination.swap import Swap, swap_coordination
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.rules import FAMILIES
from tests.generators.rewordings.reworded import analysed

PAGE = Path(__file__).parents[3] / "docs" / "captions.md"
EXAMPLES = re.findall(r"^\| `(\w+)` \| ([A-Z][^|]+) \| ([A-Z0-9][^|]+) \|$", PAGE.read_text(), re.M)


def test_every_family_has_an_example() -> None:
    assert {family for family, _, _ in EXAMPLES} == {*FAMILIES, "swap"}


@pytest.mark.parametrize(("family", "caption", "hard_positive"), EXAMPLES)
def test_an_example_is_what_a_rule_of_its_family_makes(
    family: str, caption: str, hard_positive: str
) -> None:
    analysis = analysed(caption)
    made = [
        apply_edits(caption, found.edits).text
        for rule in FAMILIES.get(family, ())
        for found in rule.find(analysis)
    ]
    swap = swap_coordination(analysis)
    if family == "swap" and isinstance(swap, Swap):
        made.append(swap.edited.text)
    assert hard_positive in made
