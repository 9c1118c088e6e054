"""All rules by name: to add one, add it to the rules of its module, or its module to the list."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.rewordings.aspect import ASPECT
from eqforge.generators.text.rewordings.clauses import with_first_participle
from eqforge.generators.text.rewordings.colors import COLORS
from eqforge.generators.text.rewordings.existentials import EXISTENTIALS
from eqforge.generators.text.rewordings.headlines import HEADLINES
from eqforge.generators.text.rewordings.numerals import NUMERALS
from eqforge.generators.text.rewordings.phrases import PHRASES
from eqforge.generators.text.rewordings.phrasings import PHRASINGS
from eqforge.generators.text.rewordings.records import Edits, Rewording, Rule
from eqforge.generators.text.rewordings.relative_clauses import RELATIVE_CLAUSES
from eqforge.generators.text.rewordings.synonyms import SYNONYMS

FAMILIES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "relative_clause": RELATIVE_CLAUSES,
    "headline": HEADLINES,
    "aspect": ASPECT,
    "existential": EXISTENTIALS,
    "numeral": NUMERALS,
    "phrase": (*PHRASINGS, *PHRASES),
    "color": COLORS,
    "synonym": SYNONYMS,
}
"""The rules by family."""

RULES: Final[Mapping[str, Rule]] = {
    rule.name: rule for family in FAMILIES.values() for rule in family
}
"""The rules by name."""

KINDS: Final[Mapping[str, str]] = {
    rule.name: f"{family}/{rule.name}" for family, rules in FAMILIES.items() for rule in rules
}
"""What the column of kinds has of each rule."""


def find_rewordings(analysis: Analysis) -> Iterator[Rewording]:
    """Yield the rewordings of a caption by all rules, rule by rule.

    One in capitals is read as if it were not, and stays in capitals.
    """
    is_in_capitals = analysis.text.isupper() and analysis.text.isascii()
    written = with_first_participle(_in_lower_case(analysis) if is_in_capitals else analysis)
    for rule in RULES.values():
        for edits in rule.find(written):
            yield Rewording(rule=rule.name, edits=_upper(edits) if is_in_capitals else edits)


def _in_lower_case(analysis: Analysis) -> Analysis:
    tokens = (dataclasses.replace(each, text=each.text.lower()) for each in analysis.tokens)
    return dataclasses.replace(analysis, text=analysis.text.lower(), tokens=tuple(tokens))


def _upper(edits: Edits) -> Edits:
    return tuple(dataclasses.replace(e, replacement=e.replacement.upper()) for e in edits)
