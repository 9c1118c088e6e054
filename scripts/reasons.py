"""Prints docs/reference/reasons.md: every stage of every pipeline, and its reasons."""

from collections import defaultdict
from collections.abc import Iterator

from eqforge.pipelines import stages_of
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import DATASETS, TYPES

INTRODUCTION = """\
Look up why eqforge rejected a candidate. To list the rejected candidates with one reason, run:

```console
$ eqforge inspect out/demo/eq-youcook2 --rejects black_image
```

An exception gives the reason `error:<Type>`. The build fails if more of a stage's candidates than
`--max-error-rate` end this way.
"""
KINDS = {"combined datasets": COMBINED, "imported benchmarks": BENCHMARKS, "all datasets": DATASETS}


def page() -> Iterator[str]:
    """Yields the lines of the page."""
    yield "# Reasons for rejects\n"
    yield INTRODUCTION
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
    yield "## Reasons\n\nThe stages that give a reason follow its meaning.\n"
    for (reason, text), names in sorted(reasons.items()):
        yield f"* `{reason}`: {text} *{', '.join(names)}*"
    yield "\n## Stages\n"
    for name, stage in stages.items():
        if stage.reasons:
            of = ", ".join(f"`{dataset}`" for dataset in datasets[name])
            for word, kind in KINDS.items():
                of = word if {*kind} <= {*datasets[name]} else of
            yield f"* *{name}*: {of}. {stage.note}".rstrip()


if __name__ == "__main__":
    print("\n".join(page()))
