from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.rules import RULES
from eqforge.generators.text.taggers import load_tagger


def analysed(caption: str) -> Analysis:
    return load_tagger().analyse([caption])[0]


def reworded(rule: str, caption: str) -> list[str]:
    """The rewordings of a caption by a rule."""
    return [apply_edits(caption, edits).text for edits in RULES[rule].find(analysed(caption))]
