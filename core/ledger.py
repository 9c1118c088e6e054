"""Stores the results of a step, so that a restarted run does not repeat it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from eqforge.core.files import storage
from eqforge.core.identity import fingerprint

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """Results of one step, keyed by everything that they depend on.

    Attributes:
      basis: the settings and versions that the results depend on, as JSON-like values.
    """

    root: str
    step: str
    basis: Any

    def remember(
        self,
        inputs: Any,
        kind: type[T],
        compute: Callable[[], T],
        is_final: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """Return the stored result for these inputs, or compute and store it.

        Args:
          is_final: whether a result may be stored; the next run computes other results again.
        """
        known = self.recall(inputs, kind)
        if known is not None:
            return known
        result = compute()
        if is_final(result):
            self.write(inputs, result)
        return result

    def recall(self, inputs: Any, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode(storage.read_bytes(self._url(inputs)), type=kind)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def write(self, inputs: Any, result: Any) -> None:
        storage.write_bytes(self._url(inputs), msgspec.json.encode(result))

    def exists(self) -> bool:
        return storage.exists(storage.join(self.root, self.step))

    def name(self, inputs: Any) -> str:
        return f"{fingerprint([self.step, self.basis, inputs])}.json"

    def names(self) -> frozenset[str]:
        root = storage.join(self.root, self.step)
        folders = (storage.join(root, name) for name in storage.list_names(root))
        return frozenset(name for folder in folders for name in storage.list_names(folder))

    def _url(self, inputs: Any) -> str:
        name = self.name(inputs)
        return storage.join(self.root, self.step, name[:2], name)
