"""The command `eqforge ablate`: train, score and compare a grid of settings, in one table."""

import itertools
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import tyro

from eqforge.core.errors import BuildError, EqforgeError, InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import read_toml, shown
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.shell import Command
from eqforge.core.visible import visible
from eqforge.evaluation.metrics.ties import Unit
from eqforge.evaluation.tables.command import metrics_report
from eqforge.evaluation.tables.render import Measure, aligned
from eqforge.evaluation.tables.settings import MetricsSettings

Options = dict[str, bool | int | float | str | list[str]]
COSTS = {"forward s": "forward_s", "step s": "step_s", "parameters": "parameters"}
"""Columns of costs, with their fields in training.json."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AblateSettings:
    """Train and score a model per combination of datasets and settings, and print one table."""

    grid: tyro.conf.Positional[Path]
    """TOML file with the training datasets, the settings to compare, and the test datasets."""

    output: Path
    """Folder for models, scores and tables. Run the same command again to resume."""


class Test(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column: one subset of a dataset."""

    dataset: str
    subset: str = "all"


class Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grid of cells; each cell is one of `rows` trained on one dataset of `train`.

    Attributes:
      model: the model that every training starts from, such as clip:FOLDER.
      train: training datasets by name.
      rows: extra options of `eqforge finetune` for each row.
      test: test datasets by column, as a path or as dataset and subset.
      metric: a metric of `eqforge metrics`, such as group.
      finetune, score: options of `eqforge finetune` and `eqforge score` for all cells.
    """

    model: str
    train: dict[str, str]
    rows: dict[str, Options]
    test: dict[str, str | Test]
    metric: str = "group"
    finetune: Options = {}
    score: Options = {}

    def columns(self) -> dict[str, Test]:
        return {n: Test(dataset=t) if isinstance(t, str) else t for n, t in self.test.items()}


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A finished cell.

    Attributes:
      run: the settings that decide its numbers.
      values: the metric of each column, which is printed times 100 if its unit is `share`.
      samples: the number of scored samples of each column; empty in files of older versions.
      cost: seconds and bytes of training, as in training.json.
    """

    run: dict[str, Any]
    values: dict[str, float]
    cost: dict[str, float | None]
    samples: dict[str, int | None] = {}
    unit: Unit = "share"


def read_grid(path: Path) -> Grid:
    try:
        grid = msgspec.convert(read_toml(path), Grid)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}") from error
    if grid.model.startswith("vectors:"):
        raise InputError(f"{path}: ablate cannot train heads on stored vectors; choose a model")
    if not (grid.train and grid.rows and grid.test):
        raise InputError(
            f"{path}: expected at least one entry in each of 'train', 'rows' and 'test'"
        )
    slugs = [_slug(*names) for names in itertools.product(grid.train, grid.rows)]
    if twice := [slug for slug in slugs if slugs.count(slug) > 1]:
        raise InputError(f"{path}: two cells would share the folder {twice[0]}; rename a row")
    return grid


def _run(command: str, line: Sequence[str], options: Options, config: Path) -> None:
    """Run a command with a file of options, in a process of its own.

    accelerate keeps its device and precision for a process, and memory is measured of a process.

    Raises:
      BuildError: the command failed, after printing why.
    """
    # JSON's texts, numbers and lists are TOML's.
    text = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in options.items())
    storage.write_bytes(str(config), text.encode())
    whole = [sys.executable, "-m", "eqforge.cli", command, *line, "--config", str(config)]
    status = subprocess.run(whole, stdout=subprocess.DEVNULL, check=False).returncode
    if status:
        raise BuildError(f"eqforge {command} ended with status {status}")


def ablate_command(settings: AblateSettings) -> int:
    grid = read_grid(settings.grid)
    found: dict[tuple[str, str], Cell | None] = {}
    names = list(itertools.product(grid.train, grid.rows))
    for number, (train, row) in enumerate(names, start=1):
        label = f"cell {number} of {len(names)} ({train}, {row})"
        print(visible(label), file=sys.stderr)
        try:
            found[train, row] = _cell(grid, train, row, settings.output)
        except EqforgeError as error:
            found[train, row] = None
            print(visible(f"eqforge: {label} failed: {error}"), file=sys.stderr)
    rows = list(_table(grid, found))
    units = {cell.unit for cell in found.values() if cell}
    unit = ", in per cent" if units == {"share"} else ""
    text = "\n".join([*aligned(rows), f"{grid.metric}{unit}; n: number of samples"]) + "\n"
    cells = [
        {"train": train, "row": row, **(msgspec.to_builtins(cell) if cell else {"values": None})}
        for (train, row), cell in found.items()
    ]
    content = {"format": "eqforge ablation", "metric": grid.metric, "cells": cells}
    storage.write_bytes(str(settings.output / "ablation.txt"), text.encode())
    storage.write_bytes(str(settings.output / "ablation.json"), _json(content))
    print(text, end="")
    if failed := [names for names, cell in found.items() if cell is None]:
        cells_failed = "; ".join(", ".join(names) for names in failed)
        print(
            visible(f"eqforge: {len(failed)} of {len(names)} cells failed: {cells_failed}"),
            file=sys.stderr,
        )
    return int(None in found.values())


def _cell(grid: Grid, train: str, row: str, output: Path) -> Cell:
    from eqforge.models.spec import parse_specs
    from eqforge.schemas.dataset.reader import open_dataset

    folder = output / _slug(train, row)
    columns = grid.columns()
    paths = {grid.train[train], *(test.dataset for test in columns.values())}
    specs = parse_specs(grid.model)
    run = {
        "model": [spec.weights().digest() for spec in specs],
        "train": grid.train[train],
        "finetune": grid.finetune | grid.rows[row],
        "score": grid.score,
        "test": msgspec.to_builtins(columns),
        "metric": grid.metric,
        "datasets": {path: open_dataset(path).sha256 for path in sorted(paths)},
    }
    finished = folder / "cell.json"
    if finished.exists():
        known = decode(read_bytes(finished), Cell, str(finished))
        for name, value in json.loads(json.dumps(run)).items():
            if known.run.get(name) != value:
                raise InputError(
                    f"{folder} was made with different settings: {name} was "
                    f"{shown(known.run.get(name))} and is now {shown(value)}. Choose a different "
                    "--output, or delete this folder."
                )
        return known
    model = folder / "model"
    line = [grid.train[train], "--model", grid.model, "--output", str(model)]
    _run("finetune", line, grid.finetune | grid.rows[row], folder / "finetune.toml")
    reports: dict[str, Sequence[Measure]] = {}
    for path in dict.fromkeys(test.dataset for test in columns.values()):
        # A column's name may not be a name of a folder.
        scores = folder / "scores" / str(len(reports))
        line = [path, "--model", f"{specs[0].kind}:{model}", "--output", str(scores)]
        _run("score", line, grid.score, folder / "score.toml")
        reports[path] = metrics_report(MetricsSettings(paths=(Path(path), scores))).measures
    chosen: dict[str, Measure] = {}
    for column, test in columns.items():
        known_values = {(one.subset, one.metric): one for one in reports[test.dataset]}
        if (test.subset, grid.metric) not in known_values:
            subsets = ", ".join(dict.fromkeys(subset for subset, _ in known_values))
            metrics = ", ".join(dict.fromkeys(metric for _, metric in known_values))
            raise InputError(
                f"test {column}: {test.dataset} has no metric {grid.metric} for the subset "
                f"{test.subset}. Its subsets: {subsets}. Its metrics: {metrics}"
            )
        chosen[column] = known_values[test.subset, grid.metric]
    cell = Cell(
        run=run,
        values={column: one.value for column, one in chosen.items()},
        cost=json.loads(read_bytes(model / "training.json"))["cost"],
        samples={column: one.scored for column, one in chosen.items()},
        unit=next(iter(chosen.values())).unit,
    )
    storage.write_bytes(str(finished), _json(msgspec.to_builtins(cell)))
    return cell


def _table(grid: Grid, found: Mapping[tuple[str, str], Cell | None]) -> Iterator[list[str]]:
    yield ["data", "method", *grid.test, "Avg", *COSTS]
    counts = next((cell.samples for cell in found.values() if cell and cell.samples), {})
    sizes = ["-" if (n := counts.get(column)) is None else f"{n:,}" for column in grid.test]
    yield ["n", "", *sizes, *[""] * (1 + len(COSTS))]
    for (train, row), cell in found.items():
        if cell is None:
            yield [train, row, "failed", *[""] * (len(grid.test) + len(COSTS))]
            continue
        scale = 100 if cell.unit == "share" else 1
        values = [scale * cell.values[column] for column in grid.test]
        costs = [cell.cost.get(field) for field in COSTS.values()]
        yield [
            *(train, row),
            *(f"{value:.2f}" for value in [*values, average(values)]),
            *("" if cost is None else f"{cost:,.3f}" for cost in costs[:2]),
            "" if costs[2] is None else f"{costs[2]:,.0f}",
        ]


def average(values: Sequence[float]) -> float:
    """Return the plain mean of the columns; each of Eq-Kubric's three is one.

    Source: Wang et al. 2023, tables 5, 6, 9 and 10, whose averages follow from their rows.
    """
    return fmean(values) if values else math.nan


def _slug(*names: str) -> str:
    return "--".join(re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "-" for name in names)


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


main = Command(
    "eqforge ablate",
    AblateSettings,
    ablate_command,
    example="eqforge ablate grid.toml --output out/ablation",
    keeps_output=True,
)

if __name__ == "__main__":
    sys.exit(main())
