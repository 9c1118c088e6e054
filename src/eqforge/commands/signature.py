"""Signatures of datasets, made by the program minisign: who vouches for a manifest.

A manifest has the SHA-256 of every file, so a signature of `dataset.json` covers the whole dataset.
Nothing is fetched.
"""

import contextlib
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files import storage
from eqforge.schemas.dataset.manifest import FILE_NAME

SUFFIX = ".minisig"
MOST_BYTES = 1 << 16

_Parsed = TypeVar("_Parsed")


def check_signature(dataset: str, key: str, signature: str | None = None) -> list[str]:
    """Checks who signed a dataset's manifest.

    Args:
      dataset: its folder or URL.
      key: minisign's public key, or the path of the file that holds it.
      signature: path or URL of the signature; None for `dataset.json.minisig` in the dataset.

    Returns:
      What is wrong; empty if the manifest is signed by the key.

    Raises:
      InputError: key or signature cannot be read or parsed.
      MissingExtra: py-minisign is not installed.
    """
    if find_spec("minisign") is None:
        raise MissingExtra("minisign", "sign")
    import minisign

    manifest = storage.join(dataset, FILE_NAME)
    public = _parse(_public_key, _read(key) if _is_file(key) else os.fsencode(key), key)
    content, place = _signature(dataset, signature)
    signed = _parse(minisign.Signature.from_bytes, content, place)
    try:
        public.verify(storage.read_bytes(manifest), signed)
    except minisign.VerifyError as error:
        if "identifiers" in str(error):  # py-minisign 0.21 has no class for it
            return [f"{place}: made by another key than {key}"]
        return [
            f"{place}: no signature of this {FILE_NAME}, which was changed since, or is another"
        ]
    return []


def _is_file(key: str) -> bool:
    """Tells whether a key is the path of an existing file."""
    with contextlib.suppress(ValueError):
        return os.path.exists(key)
    return False


def _signature(dataset: str, place: str | None) -> tuple[bytes, str]:
    """Returns a signature and its path; inside a dataset, only a plain file is read."""
    if place is not None:
        return _read(place), place
    place = storage.join(dataset, FILE_NAME + SUFFIX)
    try:
        with storage.open_below(dataset, FILE_NAME + SUFFIX) as file:
            return _short(file.read(MOST_BYTES + 1), place), place
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: cannot be read: {error}") from error


def _public_key(data: bytes) -> Any:
    import minisign

    lines = data.strip().splitlines()
    if len(lines) == 1:
        return minisign.PublicKey.from_base64(lines[0])
    return minisign.PublicKey.from_bytes(data)


def _parse(parse: Callable[[bytes], _Parsed], data: bytes, place: str) -> _Parsed:
    what = "public key" if parse is _public_key else "signature"
    try:
        return parse(data)
    except (ValueError, UnicodeError) as error:
        raise InputError(f"{place}: no {what} of minisign: {error}") from error


def _read(place: str) -> bytes:
    try:
        return _short(storage.read_range(place, 0, MOST_BYTES + 1), place)
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: cannot be read: {error}") from error


def _short(data: bytes, place: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise InputError(f"{place}: more than {MOST_BYTES:,} bytes, so no key or signature")
    return data
