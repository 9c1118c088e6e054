"""`eqforge setup`: fetches what a step needs and no package includes, when the user asks."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from eqforge.core.shell import Command
from eqforge.core.visible import visible
from eqforge.generators.text.wordnet import setup_wordnet


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Fetch what a step needs and no package brings. Nothing is fetched unless you ask.

    wordnet: synonyms and depths of words, 30 MB, for the perturbations, granularity and hard
    negatives; from NLTK's data, or else from Debian's package.

    It goes to the folder that EQFORGE_CACHE names, else to ~/.cache/eqforge.
    """

    what: Annotated[Literal["wordnet"], tyro.conf.Positional]
    """What to fetch."""


def set_up(_arguments: Arguments) -> int:
    print(setup_wordnet(lambda line: print(visible(line), file=sys.stderr)))
    return 0


main = Command("eqforge setup", Arguments, set_up)
