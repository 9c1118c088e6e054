"""What is written beside the tables of a dataset: its card, and its description in Croissant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.core.files import storage
from eqforge.schemas.dataset import card, croissant
from eqforge.schemas.dataset.profile import Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A document that lies beside the tables.

    Attributes:
      write: returns its text.
      in_folder: returns the same text for tables that lie in a folder below it.
    """

    write: Callable[[Profile], str]
    in_folder: Callable[[str, str], str]


DOCUMENTS: Final[Mapping[str, Document]] = {
    card.FILE_NAME: Document(write=card.dataset_card, in_folder=card.in_folder),
    croissant.FILE_NAME: Document(write=croissant.croissant, in_folder=croissant.in_folder),
}
"""The documents, by the names of their files."""


def write_documents(profile: Profile, folder: str) -> list[str]:
    """Write the documents of a dataset into a folder or URL; return their URLs."""
    urls = []
    for name, document in DOCUMENTS.items():
        urls.append(storage.join(folder, name))
        storage.write_bytes(urls[-1], document.write(profile).encode())
    return urls
