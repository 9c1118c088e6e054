"""Documents next to a dataset's tables: its card, and its description in Croissant."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from eqforge.core.files import storage
from eqforge.core.files.owned import check_owned
from eqforge.core.identity import sha256_hex
from eqforge.schemas.dataset import card, croissant
from eqforge.schemas.dataset.profile import Profile

DOCUMENTS: Final[Mapping[str, Callable[[Profile], str]]] = {
    card.FILE_NAME: card.dataset_card,
    croissant.FILE_NAME: croissant.croissant,
}
"""Writer of each document, by file name."""

_PATH = re.compile(r'^(    path: | *"(?:contentUrl|includes)": ")(?=data/)', re.MULTILINE)


def in_folder(text: str, folder: str) -> str:
    return _PATH.sub(rf"\1{folder}/", text)


SUMS: Final = "SHA256SUMS"
"""The digests of the documents: `eqforge card` must not change the manifest, whose digest names the
dataset in scores and votes."""


def check_replaced(folder: str) -> None:
    """Raise InputError if existing documents in a separate folder are not eqforge's."""
    existing = [name for name in DOCUMENTS if storage.exists(storage.join(folder, name))]
    sums = storage.join(folder, SUMS)
    lines = storage.read_bytes(sums).decode(errors="replace") if storage.exists(sums) else ""
    listed = {(name, digest) for digest, _, name in (x.partition("  ") for x in lines.split("\n"))}
    check_owned(folder, existing, listed, "--output")


def write_documents(profile: Profile, folder: str) -> list[str]:
    """Write the documents of a dataset, and their digests; return the documents' URLs."""
    urls, sums = [], ""
    for name, write in DOCUMENTS.items():
        data = write(profile).encode()
        sums += f"{sha256_hex(data)}  {name}\n"
        urls.append(storage.join(folder, name))
        storage.write_bytes(urls[-1], data)
    storage.write_bytes(storage.join(folder, SUMS), sums.encode())
    return urls
