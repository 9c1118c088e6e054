"""What a configuration names in stores: folders of videos and images, and annotations."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace

from eqforge.core.files import storage
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.urls import copied_urls
from eqforge.pipelines.shared.settings import DatasetConfig, RunSettings
from eqforge.schemas.dataset.manifest import WORK
from eqforge.transforms.engines.run_folder import private_folder

MEDIA = ("videos", "images", "masks")
"""Options that name a folder of media."""


@contextlib.contextmanager
def inputs_from_stores() -> Iterator[None]:
    """Lets the options of a dataset that name a file take URLs in the block; see `copied_urls`."""
    with private_folder(tempfile.gettempdir()) as folder, copied_urls(folder):
        yield


def media_folder(root: str, run: RunSettings) -> SourceFolder:
    """Returns a folder of media, for the process that starts a run."""
    return SourceFolder(root, follow_links=run.follow_links, cache_gb=run.cache_gb)


def shared_folder(option: str, root: str, run: RunSettings) -> SourceFolder:
    """Returns a folder of media, for the workers of a run: they need not list it again."""
    return replace(media_folder(root, run), index=_index(option, run))


def share_folders(config: DatasetConfig) -> None:
    """Writes the lists of a configuration's folders down for the workers of a run."""
    for option in MEDIA:
        if (root := getattr(config, option, None)) is not None:
            media_folder(root, config.run).share(_index(option, config.run))


def _index(option: str, run: RunSettings) -> str:
    return storage.join(run.output, WORK, f"list-of-{option}.json")
