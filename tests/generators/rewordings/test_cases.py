"""Each rule on captions that it rewords, and on those that it leaves alone: `cases.tsv`.

The column `way` has "both" where the reverse rule brings the caption back, "one" where it need not,
and "stays" where the rule finds nothing.
"""

from pathlib import Path

import pytest

from tests.generators.rewordings.reworded import reverse_of, reworded

_, *LINES = Path(__file__).with_name("cases.tsv").read_text("utf-8").splitlines()


@pytest.mark.parametrize("rule", sorted({line.split("\t")[0] for line in LINES}))
def test_a_rule_rewords_what_it_should_and_nothing_else(rule: str) -> None:
    for name, way, caption, other in (line.split("\t") for line in LINES):
        if name != rule:
            continue
        found = reworded(rule, caption)
        if way == "both":
            reverse = str(reverse_of(rule))
            assert other in found, caption
            assert caption in reworded(reverse, other), other
        else:
            assert found == ([other] if way == "one" else []), caption


def test_each_place_is_one_rewording() -> None:
    caption = "A cat next to a dog next to a cow"

    assert reworded("next_to_as_beside", caption) == [
        "A cat beside a dog next to a cow",
        "A cat next to a dog beside a cow",
    ]
