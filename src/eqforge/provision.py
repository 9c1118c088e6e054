"""`eqforge setup`: fetches what a step needs and no package brings, when the user asks for it."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from eqforge.generators.text.wordnet import setup_wordnet
from eqforge.pipelines.command import reported_errors


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Fetch what a step needs and no package brings; nothing is fetched unasked.

    wordnet: synonyms and depths of words, 30 MB, for the perturbations, granularity and hard
    negatives; from NLTK's data, or else from Debian's package.
    """

    what: Annotated[Literal["wordnet"], tyro.conf.Positional]
    """What to fetch."""


def main(argv: list[str]) -> int:
    """Fetches one thing and says where it lies."""
    tyro.cli(Arguments, args=argv, prog="eqforge setup")
    with reported_errors():
        print(setup_wordnet(lambda line: print(line, file=sys.stderr)))
        return 0
    return 2
