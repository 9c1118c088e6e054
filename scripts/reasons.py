"""Every stage of every pipeline and its reasons, for docs/reference/reasons.md."""

from collections import defaultdict
from collections.abc import Iterator

from eqforge.pipelines import stages_of
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import DATASETS, TYPES

KINDS = {"combined datasets": COMBINED, "imported benchmarks": BENCHMARKS, "all datasets": DATASETS}


def lines() -> Iterator[str]:
    """Yields a line for each reason, then a line for each stage."""
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
    for (reason, text), names in sorted(reasons.items()):
        yield f"* `{reason}`: {text} *{', '.join(names)}*"
    yield "\n### Stages\n"
    for name, stage in stages.items():
        if stage.reasons:
            of = ", ".join(f"`{dataset}`" for dataset in datasets[name])
            for word, kind in KINDS.items():
                of = word if {*kind} <= {*datasets[name]} else of
            yield f"* *{name}*: {of}. {stage.note}".rstrip()
