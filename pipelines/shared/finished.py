"""Handling of a dataset that is already finished."""

import contextlib
from collections.abc import Iterator

from eqforge.core import signals
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.pipelines.shared.output import check_output, refuse, remove_half_written
from eqforge.pipelines.shared.pipeline import Configured, Pipeline
from eqforge.schemas.dataset.manifest import FILE_NAME, NEXT, Manifest
from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.dataset.census import compare_media
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.replace import is_complete, settle
from eqforge.transforms.engines.exclusive_job import locked


def is_finished(
    pipeline: Pipeline[Configured], config: Configured, header: Manifest, plan: PlanFiles
) -> bool:
    """Tells whether the dataset is there, complete, and would come out the same again.

    A dataset with missing files is not: it is rebuilt beside what is left of it.

    Raises:
      InputError: it would come out different; the message says what differs.
    """
    run = config.run
    manifest = check_output(run, header)
    if manifest is None or run.overwrite:
        return False
    dataset = Dataset(folder=run.output, manifest=manifest)
    differences = list(compare_media(dataset, pipeline.media(config, plan)))
    refuse(run, f"holds {manifest.dataset}", differences)
    return is_complete(manifest, run.output)


def settle_finished(output: str) -> None:
    """Tidies a finished dataset: a killed run may not have moved all its files into place.

    It may also have left another dataset half-built beside it, which is no longer wanted.
    """
    # Not needed: the folder may be read-only, or another run may be doing the same.
    with contextlib.suppress(InputError):
        if storage.exists(storage.join(output, NEXT)):
            with locked(output):
                settle(output)
                remove_half_written(output)
                storage.delete_folder(storage.join(output, NEXT))


@contextlib.contextmanager
def stopped_unless_complete(output: str) -> Iterator[None]:
    """Ignores Ctrl-C in the block once the manifest, which is written last, is in place."""
    manifest = storage.join(output, FILE_NAME)
    before = storage.info(manifest)
    try:
        yield
    except KeyboardInterrupt:
        if storage.info(manifest) in (None, before):
            raise
        signals.forget()
