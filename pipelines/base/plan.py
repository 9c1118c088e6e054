"""`eqforge plan`: show what a build would make, its filters, and the cost from a pilot."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from eqforge.core.files.objects import fetch_inputs
from eqforge.pipelines.base.identity import check_output, header_of
from eqforge.pipelines.base.pilot import Piloted, PilotReport, filters_of, forecast_of
from eqforge.pipelines.base.pipeline import AnyPipeline, DatasetConfig
from eqforge.pipelines.base.recipe import OTHER_BYTES, changed_inputs, named_line
from eqforge.schemas.dataset.manifest import Manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanReport:
    """What a build would do.

    Attributes:
      dataset: name of the dataset.
      mode: mode of the build: `paper` or `corrected`.
      counts: counts by name, such as the number of candidate pairs.
      lines: counts, filters and rejects in words.
      sources: origin of each setting that differs from its default, by option.
      pilot: cost and result of the pilot; null without one.
      forecast: result of the pilot in words; empty without one.
      changed_inputs: input files of a recipe that no input of the plan matches byte for byte; empty
        without a recipe.
    """

    dataset: str
    mode: str
    counts: dict[str, int]
    lines: tuple[str, ...]
    sources: dict[str, str] = field(default_factory=dict)
    pilot: PilotReport | None = None
    forecast: tuple[str, ...] = ()
    changed_inputs: tuple[str, ...] = ()


def plan_dataset(
    pipeline: AnyPipeline,
    pilots: int,
    *,
    checks_output: bool,
    show: Callable[[Iterable[str]], None] = lambda lines: None,
    recipe: Manifest | None = None,
) -> PlanReport:
    """Plan a dataset: read the annotations and write nothing; open media only for a pilot.

    Args:
        pilots: records to build and discard, to estimate the cost.
        checks_output: check that the output folder is free or holds the same dataset.
        show: called with the lines of the plan, then with the lines of the pilot.
        recipe: the recipe that the settings come from, if any.
    """
    fetch_inputs()
    pipeline.check()
    header = header_of(pipeline)
    if checks_output:
        check_output(pipeline.run, header)
    counts: Counter[str] = Counter()
    kept: list[Any] = []

    def watched() -> Iterator[Any]:
        for record in pipeline.plan():
            counts.update(pipeline.measure(record))
            if isinstance(pipeline, Piloted) and len(kept) < pilots and pipeline.is_fit(record):
                kept.append(record)
            yield record

    changed = () if recipe is None else changed_inputs(recipe, header)
    lines = (
        f"{pipeline.name}: what a build would try",
        *filter_lines(pipeline.config),
        *pipeline.report(watched()),
        *named_line(changed, "inputs", OTHER_BYTES),
    )
    show(lines)
    report = PlanReport(
        dataset=pipeline.name,
        mode=pipeline.config.mode,
        counts=dict(counts),
        lines=lines,
        changed_inputs=changed,
    )
    if not isinstance(pipeline, Piloted) or not kept:
        return report
    found, forecast = forecast_of(pipeline, counts, kept)
    show(forecast)
    return replace(report, pilot=found, forecast=forecast)


def filter_lines(config: DatasetConfig) -> Iterator[str]:
    """Yield one line of active filters with their values, and one of inactive filters.

    A filter is a limit (`min_…`, `max_…`, off if None), a choice that may be `off`, or one of the
    switches above. A dataset without filters yields nothing.
    """
    on, off = list[str](), list[str]()
    for name, value in filters_of(config):
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False or value == "off":
            off.append(flag)
        else:
            on.append(flag if value is True else f"{flag} {value}")
    if on or off:
        yield f"  filters on: {', '.join(on) or 'none'}"
        yield f"  filters off: {', '.join(off) or 'none'}"
