"""What pictures of a dataset may be called: whoever writes them out makes files of such names."""

import os
import re
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import FILE_SUFFIXES
from eqforge.core.files.table_file import ADVICE

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def check_picture_id(picture_id: object, folder: str) -> str:
    """Returns the id of a picture or mask if it is a SHA-256, 64 lower-case hexadecimal digits.

    Args:
      picture_id: what a dataset says.
      folder: of the dataset, for the message.

    Raises:
      InputError: it is something else, which might lead out of a folder.
    """
    if isinstance(picture_id, str) and _SHA256.fullmatch(picture_id):
        return picture_id
    raise InputError(f"{folder}: the id {name_of(picture_id)} of a picture is no SHA-256; {ADVICE}")


def check_suffix(suffix: object, folder: str) -> str:
    """Returns the suffix of a picture's file, such as `.jpg`, if it is one that pictures have.

    Raises:
      InputError: it is another, or there is none.
    """
    if isinstance(suffix, str) and suffix in FILE_SUFFIXES:
        return suffix
    raise InputError(
        f"{folder}: the suffix {name_of(suffix)} of a picture is none of "
        f"{', '.join(FILE_SUFFIXES)}; {ADVICE}"
    )


def suffix_of(path: object, folder: str) -> str:
    """Returns the suffix of a picture's path in a dataset; see `check_suffix`."""
    return check_suffix(os.path.splitext(path)[1] if isinstance(path, str) else path, folder)
