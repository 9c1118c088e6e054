"""The command `eqforge converse`."""

import sys

from eqforge.core.shell import shell
from eqforge.evaluation.conversations.settings import ConverseSettings
from eqforge.evaluation.tables.render import FORMATS


def converse_command(settings: ConverseSettings) -> int:
    import numpy as np

    from eqforge.evaluation.conversations.answers import (
        answers_report,
        read_answers,
        read_foreign_answers,
    )
    from eqforge.evaluation.conversations.run import choose_pairs, converse
    from eqforge.evaluation.tables.render import Rules
    from eqforge.evaluation.tables.report import model_names
    from eqforge.evaluation.tables.samples import read_samples
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(settings.dataset)
    pairs = choose_pairs(dataset, settings.samples, settings.by, settings.seed)
    if settings.answers is not None:
        captions = {pair.sample_id: pair.captions for pair in pairs}
        name, found = settings.answers.stem, read_foreign_answers(settings.answers, captions)
    else:
        manifest = converse(dataset, pairs, settings)
        (name,) = model_names([manifest.model.name], [settings.folder()])
        found = read_answers(str(settings.folder()), manifest.tables["answers"])
    samples = read_samples(dataset, "source_id", settings.by)
    report = answers_report(
        dataset.manifest.dataset,
        name,
        samples.only(np.isin(samples.keys, [pair.sample_id for pair in pairs])),
        found,
        Rules(seed=settings.seed, resamples=settings.resamples),
        allow_missing=settings.allow_missing,
    )
    print(FORMATS[settings.show](report), end="" if settings.show != "text" else "\n")
    return 0


main = shell("eqforge converse", ConverseSettings, converse_command, keeps_output=True)
"""Asks what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
