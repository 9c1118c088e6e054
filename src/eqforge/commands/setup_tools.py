"""`eqforge setup`: fetches what a step needs and no package includes, when the user asks."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from eqforge.core.shell import shell
from eqforge.core.visible import visible
from eqforge.generators.text.wordnet import setup_wordnet
from eqforge.transforms.engines.flink_parts import setup_flink
from eqforge.transforms.engines.prism_parts import setup_prism

What = Literal["wordnet", "flink", "prism"]
_SETUPS: dict[What, Callable[[Callable[[str], None]], str]] = {
    "wordnet": setup_wordnet,
    "flink": setup_flink,
    "prism": setup_prism,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Fetch what a step needs and no package brings; nothing is fetched unasked.

    wordnet: synonyms and depths of words, 30 MB, for the perturbations, granularity and hard
    negatives; from NLTK's data, or else from Debian's package.

    flink: Beam's job server and Flink itself, 390 MB, for --runner FlinkRunner and
    deploy/flink/cluster; by Maven and pip. Java 11 or 17 runs them.

    prism: Beam's small engine in Go, for --runner PrismRunner; built by Go.

    All of it goes to the folder that EQFORGE_CACHE names, else to ~/.cache/eqforge.
    """

    what: Annotated[What, tyro.conf.Positional]
    """What to fetch."""


def set_up(arguments: Arguments) -> int:
    """Fetches one thing and prints where it is; returns 0."""
    print(_SETUPS[arguments.what](lambda line: print(visible(line), file=sys.stderr)))
    return 0


main = shell("eqforge setup", Arguments, set_up)
"""Fetches what a command line names."""
