"""Region features and object tags of images, from the TSV files that OSCAR's own code reads.

A line of features is `key TAB boxes TAB base64` (its retrieval code and VinVL) or
`key TAB {"num_boxes": .., "features": base64}` (its captioning code); base64 holds little-endian
float32 numbers, one row per box. A line of tags is `key TAB json`, the JSON a list of objects with
a `class`, or an object that has such a list under `objects`.

Source: microsoft/Oscar, oscar/run_retrieval.py, oscar/run_captioning.py, oscar/utils/tsv_file.py.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.visible import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Place = Annotated[int, msgspec.Meta(ge=0)]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Regions:
    """A detector's features of an image, float32 of shape (boxes, dimensions), and tags.

    There is at least one box; tags are the classes of the objects, separated by spaces.
    """

    features: NDArray[np.float32]
    tags: str


class RegionFiles:
    """Lines of a features file and a tags file, found by the image's key.

    Only the offsets of the lines are in memory.
    """

    def __init__(self, features: Path, tags: Path | None) -> None:
        self._features = _Lines(features)
        self._tags = None if tags is None else _Lines(tags)

    def __getitem__(self, key: str) -> Regions:
        """Return the regions of an image.

        Raises:
          InputError: an index file does not belong to its data file.
          ValueError: there are no regions, or they cannot be read.
        """
        features = _features(key, self._features[key])
        return Regions(
            features=features, tags="" if self._tags is None else _tags(key, self._tags[key])
        )


class _Lines:
    """A TSV file whose lines are read by key."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        self._path = path
        self._starts = _index(path, path.stat().st_mtime_ns, path.stat().st_size)

    def __getitem__(self, key: str) -> list[str]:
        if key not in self._starts:
            raise ValueError(f"{key}: {self._path.name} has no line for this image")
        with open(self._path, "rb") as stream:
            stream.seek(self._starts[key])
            found, *fields = stream.readline().decode().rstrip("\r\n").split("\t")
        if found != key:
            raise _bad_index(self._path, f"gives the line of {found!r} for {key!r}")
        return fields


def _bad_index(path: Path, problem: str) -> InputError:
    return InputError(
        f"{path}: its index {problem}; delete or recreate {path.stem}.lineidx and imageid2idx.json"
    )


@functools.lru_cache(maxsize=4)
def _index(path: Path, _changed_ns: int, _num_bytes: int) -> dict[str, int]:
    """Return the offset of each key's line, from the two index files if both exist.

    A published file has tens of gigabytes, so it is scanned only once as long as it is unchanged.
    """
    places, numbers = path.with_suffix(".lineidx"), path.parent / "imageid2idx.json"
    if places.is_file() and numbers.is_file():
        try:
            starts = msgspec.convert(places.read_text("ascii").split(), list[_Place], strict=False)
            by_key = msgspec.json.decode(numbers.read_bytes(), type=dict[str, _Place])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _bad_index(path, f"is damaged ({error})") from error
        if all(number < len(starts) for number in by_key.values()):
            return {key: starts[number] for key, number in by_key.items()}
    return dict(_scan(path))


def _scan(path: Path) -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    place = 0
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                key = line.partition(b"\t")[0].strip().decode()
            except UnicodeDecodeError as error:
                raise InputError(f"{path}: line {number}: the key is not valid UTF-8") from error
            if key in seen:
                raise InputError(f"{path} has two lines for the image {key!r}; keep one")
            if key:
                seen.add(key)
                yield key, place
            place += len(line)


def _features(key: str, fields: list[str]) -> NDArray[np.float32]:
    try:
        if len(fields) == 1:
            found = json.loads(fields[0])
            boxes, encoded = int(found["num_boxes"]), found["features"]
        else:
            boxes, encoded = int(fields[0]), fields[-1]
        data = base64.b64decode(encoded, validate=True)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"{key}: cannot read boxes and their base64 features: {error}") from error
    if boxes < 1 or not data or len(data) % (4 * boxes):
        raise ValueError(
            f"{key}: expected float32 features for {counted(boxes, 'boxes')}, "
            f"found {len(data)} bytes"
        )
    features = np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(boxes, -1)
    if not np.isfinite(features).all():
        raise ValueError(f"{key}: a feature is not a finite number")
    return features


def _tags(key: str, fields: list[str]) -> str:
    try:
        found: Any = json.loads(fields[0])
        objects = found["objects"] if isinstance(found, dict) else found
        return " ".join(str(thing["class"]) for thing in objects)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"{key}: cannot read a list of objects with classes: {error}") from error
