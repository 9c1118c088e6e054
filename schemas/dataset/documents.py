"""What is written beside the tables of a dataset: its card, and its description in Croissant."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from eqforge.core.files import storage
from eqforge.schemas.dataset import card, croissant
from eqforge.schemas.dataset.profile import Profile

DOCUMENTS: Final[Mapping[str, Callable[[Profile], str]]] = {
    card.FILE_NAME: card.dataset_card,
    croissant.FILE_NAME: croissant.croissant,
}
"""What writes each document, by the name of its file."""

_PATH = re.compile(r'^(    path: | *"(?:contentUrl|includes)": ")(?=data/)', re.MULTILINE)


def in_folder(text: str, folder: str) -> str:
    """Return the document of tables that lie in a folder below it."""
    return _PATH.sub(rf"\1{folder}/", text)


def write_documents(profile: Profile, folder: str) -> list[str]:
    """Write the documents of a dataset into a folder or URL; return their URLs."""
    urls = []
    for name, write in DOCUMENTS.items():
        urls.append(storage.join(folder, name))
        storage.write_bytes(urls[-1], write(profile).encode())
    return urls
