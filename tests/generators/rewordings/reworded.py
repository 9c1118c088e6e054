from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.rules import FAMILIES
from eqforge.generators.text.taggers import load_tagger

RULES = {name: find for rules in FAMILIES.values() for name, find in rules.items()}
_PAIRS = (
    ("add_there_is", "drop_there_is"),
    ("clause_to_there_is", "there_is_to_clause"),
    ("add_this_is", "drop_this_is"),
    ("there_is_to_theres", "theres_to_there_is"),
    ("headline_to_sentence", "sentence_to_headline"),
    ("present_to_participle", "participle_to_present"),
    ("simple_to_progressive", "progressive_to_simple"),
    ("participle_to_relative", "relative_to_participle"),
    ("clause_to_relative", "relative_to_clause"),
    ("colored", "not_colored"),
    ("number_to_digits", "digits_to_number"),
    ("noun_as_synonym", "noun_as_synonym"),
    ("adjective_as_synonym", "adjective_as_synonym"),
)
_REVERSES = {rule: other for pair in _PAIRS for rule, other in (pair, pair[::-1])}


def reverse_of(rule: str) -> str | None:
    """The rule that undoes another, None if there is none."""
    other = _REVERSES.get(rule) or "_as_".join(reversed(rule.split("_as_")))
    is_known = rule in _REVERSES or "_as_" in rule
    return other if is_known and other in RULES else None


def analysed(caption: str) -> Analysis:
    return load_tagger().analyse([caption])[0]


def reworded(rule: str, caption: str) -> list[str]:
    """The rewordings of a caption by a rule."""
    return [apply_edits(caption, edits).text for edits in RULES[rule](analysed(caption))]
