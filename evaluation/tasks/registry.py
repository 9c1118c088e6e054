"""Choose the table from a file's format or a dataset's columns."""

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.logs import form_of_file
from eqforge.evaluation.tables.render import Report
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.answers import answers_report, has_answers, is_answered
from eqforge.evaluation.tasks.boundaries import boundary_report, grounding_report, is_grounding
from eqforge.evaluation.tasks.eqben import eqben_report, eqben_samples_report, is_eqben
from eqforge.evaluation.tasks.gallery import has_gallery
from eqforge.evaluation.tasks.gap import gap_report
from eqforge.evaluation.tasks.harnesses import harness_report
from eqforge.evaluation.tasks.ladders import is_ladders, ladders_report
from eqforge.evaluation.tasks.questions import is_questions, questions_report
from eqforge.evaluation.tasks.retrieval import retrieval_report
from eqforge.evaluation.tasks.samples import TASKS, files_report, samples_report, task_of
from eqforge.evaluation.tasks.simat import is_simat, simat_report
from eqforge.schemas.dataset.reader import open_dataset


def format_report(settings: MetricsSettings) -> Report:
    settings.check_read(settings.format)
    if settings.format in TASKS:
        return files_report(TASKS[settings.format], settings.paths, settings)
    reports = {"eqben": eqben_report, "boundaries": boundary_report, "gap": gap_report}
    return reports[settings.format](settings.paths, settings)


def dataset_report(settings: MetricsSettings) -> Report:
    dataset, scores = open_dataset(str(settings.paths[0])), settings.paths[1:]
    dataset.check_samples()
    if not scores and not settings.human:
        raise InputError(
            f"{settings.paths[0]}: pass scores after the dataset. To compute scores, run eqforge "
            "score"
        )
    if is_answered(dataset) and all(map(has_answers, scores)):
        return answers_report(dataset, scores, settings)
    if is_questions(dataset):
        return questions_report(dataset, scores, settings)
    if any(map(form_of_file, scores)):
        return harness_report(dataset, scores, settings)
    if is_simat(dataset):
        return simat_report(dataset, scores, settings)
    if is_grounding(dataset):
        return grounding_report(dataset, scores, settings)
    if has_gallery(dataset):
        return retrieval_report(dataset, scores, settings)
    task = task_of(dataset)
    if task is None:
        raise InputError(
            f"{dataset.folder}: its columns do not match any task; the tasks are {', '.join(TASKS)}"
        )
    # Folders of eqforge score name their columns and quantity themselves.
    files = "files of pairs" if task is TASKS["pairs"] else "files of hard positives"
    settings.check_read("samples" if all(path.is_dir() for path in scores) else files)
    plain = settings.by is None and not settings.human
    if task is TASKS["pairs"] and plain and is_eqben(dataset):
        return eqben_samples_report(dataset, scores, settings)
    if task is TASKS["pairs"] and is_ladders(dataset):
        return ladders_report(dataset, scores, settings)
    return samples_report(dataset, task, scores, settings)
