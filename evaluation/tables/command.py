"""The command `eqforge metrics`: scores in, the papers' tables out."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.shell import shell
from eqforge.evaluation.tables.render import (
    FORMATS,
    as_comparisons,
    as_csv,
    as_json,
    as_latex,
    as_text,
)
from eqforge.evaluation.tables.report import Report, Rules, labelled
from eqforge.evaluation.tables.sample_judges import TASKS
from eqforge.evaluation.tables.settings import MetricsSettings

if TYPE_CHECKING:
    from eqforge.evaluation.tables.sample_tasks import SampleRules

FILES = {
    "metrics.json": as_json,
    "metrics.csv": as_csv,
    "comparisons.csv": as_comparisons,
    "metrics.tex": as_latex,
    "metrics.txt": as_text,
}
"""Files to write, with their renderers."""


def metrics_command(settings: MetricsSettings) -> int:
    """Writes the table if a folder is named, and prints it; returns 0.

    Raises:
      EqforgeError: the input cannot be measured, the folder cannot be written, or a package is
        missing.
    """
    report = metrics_report(settings)
    # Written first: the reader of standard output, such as `head`, may stop early.
    if settings.output is not None:
        _write(report, str(settings.output))
    show = "json" if settings.json else settings.show
    print(FORMATS[show](report), end="" if show != "text" else "\n")
    return 0


def _write(report: Report, folder: str) -> None:
    for name, write in FILES.items():
        url = storage.join(folder, name)
        try:
            storage.write_bytes(url, (write(report).rstrip("\n") + "\n").encode())
        except OSError as error:
            raise InputError(f"--output {folder}: cannot be written: {error}") from error


def metrics_report(settings: MetricsSettings) -> Report:
    """Returns the table that the settings ask for.

    Raises:
      EqforgeError: the input cannot be measured, or a package is missing.
    """
    return labelled(_measured(settings), settings.labels)


def _measured(settings: MetricsSettings) -> Report:
    from eqforge.evaluation.tables.boundary_task import boundary_report
    from eqforge.evaluation.tables.eqben import EqbenVector, eqben_report
    from eqforge.evaluation.tables.gap_task import gap_report
    from eqforge.evaluation.tables.sample_tasks import SampleRules, files_report

    if not settings.paths:
        raise InputError("name what to measure; eqforge metrics --help says how")
    rules = Rules(ties=settings.ties, seed=settings.seed, resamples=settings.resamples)
    if settings.format != "dataset":
        settings.check_read(settings.format)
    if settings.format == "eqben":
        vectors = [EqbenVector(path=p, order=settings.order) for p in settings.paths]
        return eqben_report(vectors, rules, settings.clusters)
    if settings.format == "boundaries":
        return boundary_report(settings.paths, rules, allow_missing=settings.allow_missing)
    if settings.format == "gap":
        if len(settings.paths) != 2:
            raise InputError("--format gap takes two metrics.json: in the domain, and out of it")
        return gap_report(*settings.paths)
    of_samples = SampleRules(
        rules=rules,
        by=settings.by,
        cluster=settings.cluster,
        quantity=settings.quantity,
        allow_missing=settings.allow_missing,
        errata=settings.errata,
        human=settings.human,
    )
    if settings.format in TASKS:
        return files_report(TASKS[settings.format], settings.paths, of_samples)
    return _of_dataset(settings, rules, of_samples)


def _of_dataset(settings: MetricsSettings, rules: Rules, of_samples: "SampleRules") -> Report:
    from eqforge.evaluation.harnesses.forms import form_of_file
    from eqforge.evaluation.harnesses.joins import HarnessRules
    from eqforge.evaluation.harnesses.table import harness_report
    from eqforge.evaluation.tables.answers_task import AnswerRules, answers_report, is_answered
    from eqforge.evaluation.tables.eqben_samples import eqben_samples_report, is_eqben
    from eqforge.evaluation.tables.gallery import has_gallery, is_vlue
    from eqforge.evaluation.tables.questions_task import is_questions, questions_report
    from eqforge.evaluation.tables.retrieval_contest import RetrievalRules
    from eqforge.evaluation.tables.retrieval_task import retrieval_report
    from eqforge.evaluation.tables.sample_tasks import samples_report, task_of
    from eqforge.evaluation.tables.shared_task import shared_report, shares_scenes
    from eqforge.evaluation.tables.simat_data import is_simat
    from eqforge.evaluation.tables.simat_task import SimatRules, simat_report
    from eqforge.schemas.dataset.reader import open_dataset

    dataset, scores = open_dataset(str(settings.paths[0])), settings.paths[1:]
    dataset.check_samples()
    if not scores and not settings.human:
        raise InputError(f"name scores of {settings.paths[0]} after it; eqforge score makes them")
    if is_answered(dataset) and all(path.suffix == ".jsonl" for path in scores):
        settings.check_read("answers")
        answers = AnswerRules(
            rules=rules, tokenizer=settings.tokenizer, allow_missing=settings.allow_missing
        )
        return answers_report(dataset, scores, answers)
    if is_questions(dataset):
        settings.check_read("questions")
        grouped = AnswerRules(rules=rules, allow_missing=settings.allow_missing)
        return questions_report(dataset, scores, grouped, settings.errata)
    if any(map(form_of_file, scores)):
        settings.check_read("harnesses")
        harness = HarnessRules(
            rules=rules,
            by=settings.by,
            cluster=settings.cluster,
            allow_missing=settings.allow_missing,
            errata=settings.errata,
        )
        return harness_report(dataset, scores, harness)
    how = RetrievalRules(rules=rules, mode=settings.mode, allow_missing=settings.allow_missing)
    if is_simat(dataset):
        settings.check_read("SIMAT")
        simat = SimatRules(how=how, lambdas=settings.lambdas, oracle=settings.oracle)
        cluster = settings.cluster or simat.cluster
        simat = replace(simat, by=settings.by or simat.by, cluster=cluster)
        return simat_report(dataset, scores, simat)
    if has_gallery(dataset):
        published = "VLUE's retrieval" if is_vlue(dataset) else "paper's retrieval"
        settings.check_read("retrieval" if settings.mode == "corrected" else published)
        return retrieval_report(dataset, scores, how, settings.relevance)
    task = task_of(dataset)
    if task is None:
        raise InputError(
            f"{dataset.folder}: its samples are none of {', '.join(TASKS)}, by their columns"
        )
    # Folders of eqforge score name their quantity themselves.
    asked = task is not TASKS["pairs"] and not all(path.is_dir() for path in scores)
    settings.check_read("files of hard positives" if asked else "samples")
    plain = settings.by is None and not settings.human
    if task is TASKS["pairs"] and plain and is_eqben(dataset):
        return eqben_samples_report(dataset, scores, of_samples)
    if task is TASKS["pairs"] and shares_scenes(dataset):
        return shared_report(dataset, scores, of_samples)
    return samples_report(dataset, task, scores, of_samples)


main = shell("eqforge metrics", MetricsSettings, metrics_command, keeps_output=True)
"""Measures what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
