"""The command `eqforge converse`."""

import sys

from eqforge.core.shell import shell
from eqforge.evaluation.conversations.settings import ConverseSettings
from eqforge.evaluation.tables.render import FORMATS
from eqforge.evaluation.tables.report import Report, Rules

CLUSTER = "source_id"


def converse_report(settings: ConverseSettings) -> Report:
    """Asks, or reads answers, and returns their table.

    Raises:
      EqforgeError: the input cannot be used, or a package is missing.
    """
    import numpy as np

    from eqforge.evaluation.conversations.folder import read_answers
    from eqforge.evaluation.conversations.pairs import choose_pairs
    from eqforge.evaluation.conversations.run import converse
    from eqforge.evaluation.conversations.table import answers_report, read_foreign_answers
    from eqforge.evaluation.tables.report import model_names
    from eqforge.evaluation.tables.samples import read_samples
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(settings.dataset)
    pairs = choose_pairs(dataset, settings.samples, settings.by, settings.seed)
    if settings.answers is not None:
        captions = {pair.sample_id: pair.captions for pair in pairs}
        name, found = settings.answers.stem, read_foreign_answers(settings.answers, captions)
    else:
        manifest = converse(settings)
        (name,) = model_names([manifest.model.name], [settings.folder()])
        found = read_answers(str(settings.folder()), manifest.tables["answers"])
    everything = read_samples(dataset, CLUSTER, settings.by)
    samples = everything.only(np.isin(everything.keys, [pair.sample_id for pair in pairs]))
    rules = Rules(seed=settings.seed, resamples=settings.resamples)
    allowed = settings.allow_missing
    return answers_report(
        dataset.manifest.dataset, name, samples, found, rules, allow_missing=allowed
    )


def converse_command(settings: ConverseSettings) -> int:
    """Asks, or reads answers, and prints their table; returns 0.

    Raises:
      EqforgeError: the input cannot be used, or a package is missing.
    """
    report = converse_report(settings)
    print(FORMATS[settings.show](report), end="" if settings.show != "text" else "\n")
    return 0


main = shell("eqforge converse", ConverseSettings, converse_command, keeps_output=True)
"""Asks what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
