"""Unpickles annotation files that hold plain containers and NumPy arrays, and nothing else.

The unpickler is the standard library's in Python, which can be told what to refuse; the one in C
can be crashed by a file of a hundred bytes. It has no public name in Python 3.11.
"""

import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, clipped
from eqforge.core.files.pickled_arrays import PickledArray, PickledType, array_maker
from eqforge.core.files.source_file import open_input

_KEY_TYPES = frozenset({str, bytes, int, float, bool, type(None)})


class PlainUnpickler(pickle._Unpickler):
    """Makes plain containers and NumPy arrays, and refuses everything else.

    Keys are plain, because hashing a deeply nested tuple crashes the process; only arrays are given
    a state, which could otherwise change a function of this process.
    """

    # Members of the base class that its type stub lacks.
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    metastack: list[list[Any]]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]
    read: Callable[[int], bytes]

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Returns the function that makes a part of an array.

        Raises:
          InputError: the pickle asks for anything else.
        """
        maker = array_maker(module_name, global_name)
        if maker is None:
            raise InputError(
                f"it asks for {clipped(module_name)}.{clipped(global_name)}; only plain "
                "containers and NumPy arrays are read from a pickle, because anything else can "
                "run code"
            )
        return maker

    def _load_build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], PickledArray | PickledType):
            raise pickle.UnpicklingError("it gives a state to something that is not an array")
        self.stack[-1].__setstate__(state)

    def _load_dict(self) -> None:
        items = self.pop_mark()
        check_keys(items[::2])
        self.append(dict(zip(items[::2], items[1::2], strict=True)))

    def _load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set_items([key, value])

    def _load_setitems(self) -> None:
        self._set_items(self.pop_mark())

    def _set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise pickle.UnpicklingError("it gives members to something that is not a dict")
        check_keys(items[::2])
        target.update(zip(items[::2], items[1::2], strict=True))

    def _load_bytearray(self) -> None:
        """Reads the bytes that exist; the base class allocates the declared length."""
        self.append(self.read(int.from_bytes(self.read(8), "little")))

    def _refuse(self) -> None:
        raise pickle.UnpicklingError("it holds a set, which no annotation has")

    dispatch[pickle.BUILD[0]] = _load_build
    dispatch[pickle.DICT[0]] = _load_dict
    dispatch[pickle.SETITEM[0]] = _load_setitem
    dispatch[pickle.SETITEMS[0]] = _load_setitems
    dispatch[pickle.BYTEARRAY8[0]] = _load_bytearray
    for _opcode in (pickle.EMPTY_SET, pickle.FROZENSET, pickle.ADDITEMS):
        dispatch[_opcode[0]] = _refuse


def check_keys(keys: Iterable[Any]) -> None:
    """Checks that the keys of a dict are plain.

    Raises:
      UnpicklingError: one is not.
    """
    if not _KEY_TYPES.issuperset(map(type, keys)):
        raise pickle.UnpicklingError("the key of a dict is neither text nor a number")


def load_pickle(path: str | Path) -> Node:
    """Reads a pickle of dicts, lists, tuples, strings, numbers and NumPy arrays.

    Raises:
      InputError: the file cannot be read, is damaged, or asks for any other class or function;
        the message names it. Nothing of such a file is executed.
    """
    try:
        with open_input(path) as stream:
            return Node(Path(path).name, "", _load(stream, Path(path).name))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _load(stream: BinaryIO, file: str) -> Any:
    try:
        return PlainUnpickler(stream).load()
    except Exception as error:
        raise damaged(file, error) from error


def damaged(file: str, error: Exception) -> InputError:
    """Returns the error to raise for a pickle on which the unpickler failed."""
    if isinstance(error, InputError):
        return InputError(f"{file}: {error}")
    found = f"{type(error).__name__}: {clipped(str(error))}"
    return InputError(f"{file}: not a readable pickle: {found}")
