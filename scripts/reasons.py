"""Prints docs/reference/reasons.md: every stage of every pipeline, and its reasons."""

import textwrap
from collections import defaultdict
from collections.abc import Iterator

from eqforge.pipelines import stages_of
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.datasets import TYPES

WIDTH = 120
INTRODUCTION = """\
Every reject names its stage and one of that stage's reasons. An exception on one record is
`error:<Type>`; when more than `--max-error-rate` of a stage's candidates end so, the build fails.
The records of `eq-video`'s captions that are no captioned moments are held to that share, before
any work. (This page is written by `make docs`.)
"""


def page() -> Iterator[str]:
    """Yields the lines of the page."""
    yield "# Why a candidate was refused\n"
    yield textwrap.fill(INTRODUCTION, WIDTH)
    stages: dict[str, Stage] = {}
    datasets: defaultdict[str, list[str]] = defaultdict(list)
    for dataset in TYPES:
        for name, stage in stages_of(dataset).items():
            stages[name] = stage
            datasets[name].append(f"`{dataset}`")
    for name, stage in stages.items():
        if stage.reasons:
            yield f"\n## {name}\n"
            yield textwrap.fill(f"Of {', '.join(datasets[name])}. {stage.note}".strip(), WIDTH)
            yield "\n| reason | meaning |\n|---|---|"
            yield from (f"| `{reason}` | {text} |" for reason, text in stage.reasons.items())


if __name__ == "__main__":
    print("\n".join(page()))
