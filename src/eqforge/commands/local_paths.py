"""Has every option of a command line that is a path of this machine refuse URLs in one sentence."""

import contextlib
import re
from pathlib import Path
from typing import Any

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from eqforge.schemas.errors import InputError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)|data:")


def local_path(text: str) -> Path:
    """Returns the path that an argument names.

    Raises:
      InputError: it is a URL, which a path would shorten by a slash.
    """
    if _URL.match(text):
        raise InputError(f"{text}: is a URL, where a file or folder of this machine is wanted")
    return Path(text)


def local_paths() -> contextlib.AbstractContextManager[Any]:
    """Returns the context in which command lines are read so."""
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Path] | None:
        if info.type is not Path:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="PATH",
            instance_from_str=lambda arguments: local_path(arguments[0]),
            is_instance=lambda value: isinstance(value, Path),
            str_from_instance=lambda value: [str(value)],
        )

    return registry
