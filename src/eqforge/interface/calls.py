"""The commands as functions: options are keyword arguments, errors are exceptions.

`eqforge COMMAND --help` lists the options of a command. Each keyword has the name and default of an
option, such as `max_side=256` for `--max-side 256`. `dataset` is the folder or URL of a finished
dataset, and `output` is the folder or URL to write. To resume an interrupted call, repeat it.
Invalid input raises InputError. A build that ends before its dataset is complete raises BuildError.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.source_file import one_content
from eqforge.core.visible import nearest
from eqforge.evaluation.scoring.command import ScoreSettings
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.generators.text.lints.lint import Finding
from eqforge.interface.keywords import in_keywords, settings_from
from eqforge.pipelines import pipeline_of
from eqforge.pipelines.base.command import inputs_from_stores
from eqforge.pipelines.base.pipeline import AnyPipeline, Mode
from eqforge.schemas.tables.datasets import MADE_BY

if TYPE_CHECKING:
    from eqforge.commands import diff as diff_module
    from eqforge.commands import verify as verify_module
    from eqforge.evaluation.report import write as report_module
    from eqforge.evaluation.review.outcome import ReviewOutcome
    from eqforge.evaluation.review.plan import ReviewPlan
    from eqforge.evaluation.tables.render import Report
    from eqforge.interface.dataset import OpenDataset
    from eqforge.pipelines.base.plan import PlanReport
    from eqforge.schemas.dataset.manifest import Manifest
    from eqforge.schemas.dataset.score_tables import ScoresManifest
    from eqforge.transforms.export.note import ExportNote

Result = TypeVar("Result")


def build(
    dataset: str, *, recipe: str | Path | None = None, beam: Sequence[str] = (), **settings: Any
) -> "OpenDataset":
    """Build a dataset, import a benchmark or resume an interrupted build, and open the result.

    Args:
      dataset: name of the dataset or benchmark, such as "eq-video" or "winoground".
      recipe: folder or URL of a recipe with the settings. To compare the result with the recipe,
        call `diff(recipe, output)`.
      beam: engine options, like the options after `--` on the command line.
      **settings: options of `eqforge build DATASET`, or of `eqforge import` if `source` is set.
    """
    from eqforge.pipelines.base.runner import build_dataset

    pipeline = _pipeline(dataset)
    with inputs_from_stores():
        _, config = _config(pipeline, settings, recipe)
        with in_keywords(pipeline.Config):
            build_dataset(pipeline(config), beam)
            return open(config.run.output)


def combine(
    *parts: str | Path, output: str | Path, beam: Sequence[str] = (), **settings: Any
) -> "OpenDataset":
    """Combine datasets, or resume an interrupted combination, and open the result.

    Args:
      *parts: folders or URLs of the datasets.
      beam: engine options, like the options after `--` on the command line.
    """
    from eqforge.pipelines.base.runner import build_dataset
    from eqforge.pipelines.combined import Combined, Config

    with in_keywords(Config), inputs_from_stores():
        given = {"parts": parts, "output": output, **settings}
        config = settings_from(Config, given, Combined.usual())
        build_dataset(Combined(config), beam)
        return open(config.run.output)


def plan(
    dataset: str, *, recipe: str | Path | None = None, pilot: int = 0, **settings: Any
) -> "PlanReport":
    """Preview a build without writing a dataset. You can leave out `output`.

    Args:
      dataset: name of the dataset, such as "eq-video".
      recipe: folder or URL of a recipe with the settings. In the result, `changed_inputs` lists the
        inputs whose bytes have changed.
      pilot: number of records to process for an estimate of time and storage.
      **settings: options of `build`.
    """
    from eqforge.pipelines.base.command import UNNAMED
    from eqforge.pipelines.base.plan import plan_dataset

    pipeline = _pipeline(dataset)
    with one_content(), inputs_from_stores():
        of_recipe, config = _config(pipeline, {"output": UNNAMED, **settings}, recipe)
        with in_keywords(pipeline.Config):
            return plan_dataset(
                pipeline(config), pilot, checks_output="output" in settings, recipe=of_recipe
            )


def open(path: str | Path) -> "OpenDataset":
    """Open the finished dataset in the folder or at the URL `path`."""
    from eqforge.interface.dataset import OpenDataset
    from eqforge.schemas.dataset.reader import open_dataset

    return OpenDataset(open_dataset(str(path)))


def verify(path: str | Path) -> "verify_module.Verification":
    """Check a finished dataset: files, schemas, counts, ids, images and captions."""
    from eqforge.commands import verify as verify_module

    return verify_module.verify_dataset(str(path))


def diff(
    a: str | Path,
    b: str | Path,
    *,
    table: Sequence[str] = (),
    only: Sequence[str] = (),
    examples: int = 3,
    report: str | Path | None = None,
    overwrite: bool = False,
) -> "diff_module.Difference":
    """Compare the records and columns of two finished datasets.

    Args:
      table: tables to compare (default: all).
      only: columns to compare (default: all).
      examples: maximum number of listed records of each kind in each table.
      report: folder for web pages that show the samples that differ.
      overwrite: whether to replace a different report in this folder.
    """
    from eqforge.commands import diff as diff_module

    def compare(asked: diff_module.Arguments) -> diff_module.Difference:
        found = diff_module.differences(asked)
        if asked.report is not None:
            diff_module.write_report(asked, asked.report)
        return found

    given = {"a": a, "b": b, "table": table, "only": only, "examples": examples}
    pages = {"report": report, "overwrite": overwrite}
    return _run(compare, diff_module.Arguments, given | pages)


def export(
    dataset: str | Path, *, format: str, output: str | Path, **settings: Any
) -> "ExportNote":
    """Export a finished dataset to a different format and list the written files.

    Args:
      format: name of the format, such as "hf". `eqforge export --help-all` lists the formats.
    """
    from eqforge.commands import export as export_module

    given = {"dataset": dataset, "format": format, "output": output, **settings}
    return _run(export_module.export, export_module.Arguments, given)


def card(
    dataset: str | Path, *, about: str | Path | None = None, output: str | Path | None = None
) -> list[str]:
    """Write a dataset's card and its Croissant description and return their paths or URLs.

    Args:
      about: TOML file with the author's information about the dataset.
      output: folder or URL for the two files (default: the dataset's own).
    """
    from eqforge.commands import card as card_module

    given = {"dataset": dataset, "about": about, "output": output}
    return _run(card_module.write_card, card_module.Arguments, given)


def report(
    dataset: str | Path,
    *,
    output: str | Path | None = None,
    scores: Sequence[str | Path] = (),
    **settings: Any,
) -> "report_module.Report":
    """Write web pages that show every row of a dataset and return their path and counts.

    Args:
      output: folder of the report (default: DATASET-report, next to a local dataset).
      scores: model scores, as folders written by `score` or as files.
    """
    from eqforge.commands import report as report_command

    given = {"dataset": dataset, "output": output, "scores": scores, **settings}
    return _run(report_command.report_dataset, report_command.Arguments, given)


def review_plan(
    dataset: str | Path,
    *,
    protocol: str | Path,
    reviewers: Sequence[str],
    output: str | Path,
    **settings: Any,
) -> "ReviewPlan":
    """Write review tasks as web pages and return their path and the number of tasks per reviewer.

    Args:
      protocol: name of a protocol that `eqforge review plan --help` lists, or a TOML file.
    """
    from eqforge.evaluation.review.plan import write_plan
    from eqforge.evaluation.review.settings import Plan

    given = {"dataset": dataset, "protocol": protocol, "reviewers": reviewers, "output": output}
    return _run(write_plan, Plan, given | settings)


def review_import(
    dataset: str | Path,
    votes: str | Path | Sequence[str | Path],
    *,
    output: str | Path,
    **settings: Any,
) -> "ReviewOutcome":
    """Turn reviewers' votes into a file of decisions and return counts and agreement.

    Args:
      votes: files that reviewers saved.
      output: file of decisions to write.
    """
    from eqforge.evaluation.review.outcome import import_votes
    from eqforge.evaluation.review.settings import Import

    given = {"dataset": dataset, "votes": votes, "output": output, **settings}
    return _run(import_votes, Import, given)


def lint(path: str | Path, *, hard_positives: str | Path | None = None) -> list[Finding]:
    """Find defects in the text pairs of a published file, your own file or a dataset.

    Args:
      hard_positives: second file of a published set of hard positives.
    """
    from eqforge.generators.text.lints.command import LintSettings, lint_file

    given = {"paths": (path,), "hard_positives": hard_positives}
    return list(lint_file(Path(path), settings_from(LintSettings, given)))


def score(
    dataset: str | Path, *, model: str, output: str | Path, **settings: Any
) -> "ScoresManifest":
    """Score the images and captions of a dataset with a model and write the scores.

    Args:
      model: model in the form KIND:MODEL. docs/guides/scoring.md lists the kinds.
    """
    from eqforge.evaluation.scoring.run import score_dataset

    given = {"dataset": str(dataset), "model": model, "output": output, **settings}
    return _run(score_dataset, ScoreSettings, given)


def metrics(*paths: str | Path | Sequence[str | Path], **settings: Any) -> "Report":
    """Compute metrics from a dataset and its scores, and return a table that you can print.

    Args:
      *paths: dataset, followed by one or more scores, separately or in lists.
    """
    from eqforge.evaluation.tables.command import metrics_report

    every = [one for each in paths for one in ([each] if isinstance(each, str | Path) else each)]
    return _run(metrics_report, MetricsSettings, {"paths": every, **settings})


def _run(run: Callable[[Any], Result], kind: type, given: Mapping[str, Any]) -> Result:
    with in_keywords(kind):
        return run(settings_from(kind, given))


def _pipeline(dataset: str) -> type[AnyPipeline]:
    known = MADE_BY["plan"]
    if dataset not in known:
        hint = nearest(dataset, known) or f"; the datasets are {', '.join(known)}"
        raise InputError(f"unknown dataset {dataset!r}{hint}")
    return pipeline_of(dataset)


def _config(
    pipeline: type[AnyPipeline], settings: dict[str, Any], recipe: str | Path | None
) -> tuple["Manifest | None", Any]:
    """Return the manifest of a recipe, if any, and the settings of a call.

    Raises:
      InputError: the recipe is for a different dataset, or a setting is wrong.
    """
    if recipe is None:
        mode: Mode = "paper" if settings.get("mode") == "paper" else "corrected"
        with in_keywords(pipeline.Config):
            return None, settings_from(pipeline.Config, settings, pipeline.usual(mode))
    from eqforge.pipelines.base.recipe import settings_of_recipe
    from eqforge.schemas.dataset.recipe import FILE_NAME, open_recipe
    from eqforge.transforms.export.rows import check_files

    opened = open_recipe(str(recipe))
    url = storage.join(opened.folder, FILE_NAME)
    if opened.manifest.dataset != pipeline.name:
        raise InputError(f"the recipe {url} is for {opened.manifest.dataset}, not {pipeline.name}")
    # What is wrong in the recipe is not the caller's: its options keep the names they have there.
    usual = settings_of_recipe(pipeline, opened.manifest, url)
    for table in opened.manifest.tables:
        check_files(opened, table)
    with in_keywords(pipeline.Config):
        config = settings_from(pipeline.Config, settings, usual.config)
        usual.check_given({name: f"{name}={value!r}" for name, value in settings.items()})
    return opened.manifest, config
