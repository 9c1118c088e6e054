"""`eqforge setup`: fetch data that a step needs and no package includes, on request."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from eqforge.core.shell import Command
from eqforge.core.visible import visible
from eqforge.generators.text.wordnet import setup_wordnet


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Download WordNet, which some steps need and no package includes.

    Its synonyms and word depths (30 MB) are used for perturbations, granularity and hard negatives.
    The files are stored in $EQFORGE_CACHE, or in ~/.cache/eqforge.
    """

    what: Annotated[Literal["wordnet"], tyro.conf.Positional]
    """Resource to download. `wordnet` is the only choice."""


def set_up(_arguments: Arguments) -> None:
    print(setup_wordnet(lambda line: print(visible(line), file=sys.stderr)))


main = Command("eqforge setup", Arguments, set_up)
