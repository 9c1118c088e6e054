"""Identity of records and datasets: digests, names, seeds, traces of settings, versions."""

import enum
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args


class Trace(enum.Enum):
    """What a setting adds to the identity of a dataset instead of its value.

    Annotate the setting with it: `workers: Annotated[int, Trace.NONE] = 1`.
    """

    NONE = "it says where or how a run happens, and no row depends on it"
    IF_CHANGED = "a group that is younger than some datasets adds nothing at its defaults"
    GIVEN = "whether there is such a folder of media: the rows hold what was read from it"
    NAME = "the name alone of a file or folder of this machine; a public name or URL as it stands"


@dataclass(frozen=True, slots=True)
class TraceOf:
    """The trace of a setting that names models: their identity, such as their weights."""

    identify: Callable[[Any], Sequence[Any]]


def trace_of(hint: Any) -> Trace | TraceOf | None:
    """Return the trace in a setting's type hint; None if its value is the trace."""
    for each in (*getattr(hint, "__metadata__", ()), *map(trace_of, get_args(hint))):
        if isinstance(each, Trace | TraceOf):
            return each
    return None


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a JSON-like value, independent of the order of its keys."""
    return sha256_hex(json.dumps(value, sort_keys=True, ensure_ascii=True).encode())


def short_digest(value: Any) -> str:
    """Return 12 hexadecimal digits for a value in an id, independent of the order of its keys.

    Values that JSON cannot express, such as the bytes of a Parquet column, count by their `repr`.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=repr)
    return sha256_hex(text.encode())[:12]


class Namer:
    """Make names unique: the second and later record with a name get `-2`, `-3`, ...

    A name must depend on a record's whole content. Records with the same name are then equal, so
    their order does not matter.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name}-{self._seen[name]}"


def derive_seed(run_seed: int, record_id: str, step: str, step_version: int) -> int:
    """Return the seed of one step on one record, in [0, 2**63): the same on every machine."""
    digest = hashlib.sha256(json.dumps([run_seed, record_id, step, step_version]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def bucket(record_id: str, buckets: int) -> int:
    """Return the bucket of a record in [0, buckets): stable, and uniform over records."""
    digest = hashlib.blake2b(record_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % buckets


def picture_key(image: str, text_id: str) -> str:
    """Return a key shared by the texts of one image, or the text's own id without an image."""
    return image or f"\0{text_id}"


def is_sampled(record_id: str, fraction: float) -> bool:
    """Return True if a record is in the sample; larger fractions contain smaller ones."""
    return sample_rank(record_id) < fraction * 2**64


def sample_rank(record_id: str) -> int:
    """Return a record's rank in [0, 2**64); samples take the lowest."""
    digest = hashlib.blake2b(record_id.encode(), digest_size=8, person=b"sample").digest()
    return int.from_bytes(digest, "big")


def versions_of(*packages: str) -> dict[str, str]:
    found = {package: _version(package) for package in packages}
    return {package: one for package, one in found.items() if one is not None}


def version(package: str) -> str:
    from importlib import metadata  # which imports the parser of e-mail

    return metadata.version(package)


@functools.cache
def _version(package: str) -> str | None:
    # Parses the package's metadata anew each time, which takes milliseconds.
    try:
        return version(package)
    except ModuleNotFoundError:  # importlib.metadata's PackageNotFoundError is one
        return None
