"""Prints docs/reference/reasons.md: every stage of every pipeline, and its reasons."""

import textwrap
from collections import defaultdict
from collections.abc import Iterator

from eqforge.pipelines import stages_of
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import DATASETS, TYPES

WIDTH = 120
INTRODUCTION = """\
`eqforge inspect DATASET` counts the rejects of a dataset, and `--rejects REASON` shows them. Each
names its stage and one of that stage's reasons. A record that ends in an exception is rejected as
`error:<Type>`; if more than `--max-error-rate` of a stage's candidates end so, the build fails.
"""


def page() -> Iterator[str]:
    """Yields the lines of the page."""
    yield "# Why a candidate was rejected\n"
    yield textwrap.fill(INTRODUCTION, WIDTH)
    stages: dict[str, Stage] = {}
    datasets: defaultdict[str, list[str]] = defaultdict(list)
    for dataset in TYPES:
        for name, stage in stages_of(dataset).items():
            stages[name] = stage
            datasets[name].append(dataset)
    reasons: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, stage in stages.items():
        for reason, text in stage.reasons.items():
            reasons[reason, text].append(name)
    yield "\n## Reasons\n\n| reason | meaning | stages |\n|---|---|---|"
    for (reason, text), names in sorted(reasons.items()):
        yield f"| `{reason}` | {text} | {', '.join(names)} |"
    yield "\n## Stages\n\n| stage | of | |\n|---|---|---|"
    for name, stage in stages.items():
        if stage.reasons:
            of = ", ".join(f"`{dataset}`" for dataset in datasets[name])
            if len(datasets[name]) >= len(BENCHMARKS):
                of = "every dataset" if {*DATASETS} <= {*datasets[name]} else "imported benchmarks"
            yield f"| {name} | {of} | {' '.join(stage.note.split())} |"


if __name__ == "__main__":
    print("\n".join(page()))
