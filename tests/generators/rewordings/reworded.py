from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.rules import RULES
from eqforge.generators.text.taggers import load_tagger


def analysed(caption: str) -> Analysis:
    return load_tagger().analyse([caption])[0]


def reworded(rule: str, caption: str) -> list[str]:
    """The rewordings of a caption by a rule."""
    return [apply_edits(caption, found.edits).text for found in RULES[rule].find(analysed(caption))]


def check_both_ways(there: str, back: str, caption: str, other: str) -> None:
    """Checks that one rule makes the other caption, and its reverse the first again."""
    assert RULES[there].reverse == back
    assert RULES[back].reverse == there
    assert other in reworded(there, caption)
    assert caption in reworded(back, other)
