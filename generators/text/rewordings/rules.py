"""List all rules by name; add a rule to its module, or a module to the list."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.rewordings.clauses import with_first_participle
from eqforge.generators.text.rewordings.existentials import EXISTENTIALS
from eqforge.generators.text.rewordings.headlines import ASPECT, HEADLINES
from eqforge.generators.text.rewordings.phrases import PHRASES
from eqforge.generators.text.rewordings.records import Finder, Rewording
from eqforge.generators.text.rewordings.relative_clauses import RELATIVE_CLAUSES
from eqforge.generators.text.rewordings.single_words import COLORS, NUMERALS, SYNONYMS

FAMILIES: Final[Mapping[str, Mapping[str, Finder]]] = {
    "relative_clause": RELATIVE_CLAUSES,
    "headline": HEADLINES,
    "aspect": ASPECT,
    "existential": EXISTENTIALS,
    "numeral": NUMERALS,
    "phrase": PHRASES,
    "color": COLORS,
    "synonym": SYNONYMS,
}

KINDS: Final[Mapping[str, str]] = {
    rule: f"{family}/{rule}" for family, rules in FAMILIES.items() for rule in rules
}


def find_rewordings(analysis: Analysis) -> Iterator[Rewording]:
    """Yield the rewordings of a caption, rule by rule; captions in capitals stay in capitals."""
    is_in_capitals = analysis.text.isupper() and analysis.text.isascii()
    if is_in_capitals:
        tokens = tuple(replace(each, text=each.text.lower()) for each in analysis.tokens)
        analysis = replace(analysis, text=analysis.text.lower(), tokens=tokens)
    analysis = with_first_participle(analysis)
    finders = (each for rules in FAMILIES.values() for each in rules.items())
    for rule, find in finders:
        for edits in find(analysis):
            if is_in_capitals:
                edits = tuple(replace(e, replacement=e.replacement.upper()) for e in edits)
            yield Rewording(rule=rule, edits=edits)
