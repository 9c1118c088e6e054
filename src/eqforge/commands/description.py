"""The check of the Croissant description beside a dataset."""

from collections.abc import Iterator

from eqforge.core.files import storage
from eqforge.core.visible import shortened
from eqforge.schemas.dataset import croissant
from eqforge.schemas.dataset.manifest import MAX_BYTES, settled
from eqforge.schemas.dataset.reader import Dataset


def check_description(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every file that the Croissant description, if there is one, has wrong.

    While a dataset is moved into place its documents follow the manifest, and are not compared.
    """
    if dataset.manifest != settled(dataset.manifest):
        return
    try:
        with storage.open_below(dataset.folder, croissant.FILE_NAME) as stream:
            described = croissant.described_files(stream.read(MAX_BYTES).decode())
    except FileNotFoundError:  # an earlier version wrote none
        return
    except (ValueError, RecursionError) as error:
        yield f"{croissant.FILE_NAME}: cannot be read: {error}"
        return
    different = described.items() ^ croissant.listed_files(dataset.manifest).items()
    for path in sorted({path for path, _ in different}):
        yield f"{croissant.FILE_NAME}: does not describe {shortened(path, 300)} as it is"
