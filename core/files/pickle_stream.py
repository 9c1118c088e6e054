"""Reads a large pickled dict member by member, so that its raw form never fills memory.

An unpickler keeps a memo of everything it has made, in case a later part refers to it. Here the
memo forgets the bulk of each member as soon as the member has been converted. A pickle that does
refer to something forgotten is read again, as a whole.
"""

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, shown
from eqforge.core.files.safe_pickle import PlainUnpickler, check_keys, damaged, load_pickle
from eqforge.core.files.source_file import open_input
from eqforge.core.late import numpy as np

T = TypeVar("T")

_REMEMBERED_CHARS = 32  # enough for names of fields, classes and relations
_WIDEST_GAP = 1_000_000  # a position far beyond would make the C unpickler allocate gigabytes


class _Forgotten(Exception):
    """The pickle refers to a part that is no longer there."""


class _Memo(list[Any]):
    """A pickle's memo: a list takes a tenth of the memory of the standard library's dict."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if index > len(self) + _WIDEST_GAP:
            raise pickle.UnpicklingError(f"the memo's position {index} is out of the way")
        if index != len(self):
            raise _Forgotten  # parts are numbered in order, except in pickles made by hand
        self.append(value)

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        if value is None:
            raise _Forgotten
        return value

    def forget(self, start: int) -> None:
        """Drops what was made since a position, except small parts that may be reused."""
        for index in range(start, len(self)):
            if _is_bulky(super().__getitem__(index)):
                super().__setitem__(index, None)


def _is_bulky(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return len(value) > _REMEMBERED_CHARS
    if isinstance(value, tuple):
        return not all(isinstance(part, int | str) for part in value)
    return isinstance(value, dict | list | np.ndarray)


class _MemberUnpickler(PlainUnpickler):
    """Passes on the members of the outermost dict instead of collecting them."""

    dispatch: ClassVar[dict[int, Any]] = dict(PlainUnpickler.dispatch)

    def __init__(self, stream: Any, take: Callable[[Any, Any], None]) -> None:
        super().__init__(stream)
        self.memo = _Memo()
        self._take = take
        self._kept = 1  # the outermost dict itself

    def _set_items(self, items: list[Any]) -> None:
        if self.metastack or len(self.stack) > 1:
            super()._set_items(items)
            return
        check_keys(items[::2])
        for key, value in zip(items[::2], items[1::2], strict=True):
            self._take(key, value)
        self.memo.forget(self._kept)
        self._kept = len(self.memo)

    def _load_short_text(self) -> None:
        self.append(sys.intern(str(self.read(self.read(1)[0]), "utf-8", "surrogatepass")))

    def _load_text(self) -> None:
        length = int.from_bytes(self.read(4), "little")
        self.append(sys.intern(str(self.read(length), "utf-8", "surrogatepass")))

    dispatch[pickle.SHORT_BINUNICODE[0]] = _load_short_text
    dispatch[pickle.BINUNICODE[0]] = _load_text


def convert_members(path: str | Path, convert: Callable[[str, Node], T]) -> dict[str, T]:
    """Returns the members of a pickled dict, each converted as soon as it is read.

    Args:
      path: a pickle of plain containers and NumPy arrays; see `load_pickle`.
      convert: takes a member's key and value. It may run twice for one member, and must not keep
        the value.

    Raises:
      InputError: the file is not such a pickle, or `convert` raised it.
    """
    try:
        return _converted_in_passing(path, convert)
    except _Forgotten:
        return {key: convert(key, node) for key, node in _drain(load_pickle(path))}


def _converted_in_passing(path: str | Path, convert: Callable[[str, Node], T]) -> dict[str, T]:
    file = Path(path).name
    converted: dict[str, T] = {}
    failed: list[InputError] = []

    def take(key: Any, value: Any) -> None:
        try:
            name = Node(file, shown(key), key).name()
            converted[name] = convert(name, Node(file, name, value))
        except InputError as error:
            failed.append(error)
            raise

    try:
        with open_input(path) as stream:
            whole = _MemberUnpickler(stream, take).load()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except _Forgotten:
        raise
    except Exception as error:
        raise (failed[0] if failed else damaged(file, error)) from error
    Node(file, "", whole).mapping()
    return converted


def _drain(node: Node) -> Iterator[tuple[str, Node]]:
    """Yields and forgets the members one by one, so that they are never all in both forms."""
    members = node.mapping()
    for key in list(members):
        name = Node(node.file, shown(key), key).name()
        yield name, Node(node.file, name, members.pop(key))
