"""A pipeline step that may count its elements for the progress display."""

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

import apache_beam as beam

from eqforge.transforms.engines import progress
from eqforge.transforms.engines.placement import on_gpu

Rules = TypeVar("Rules")


@dataclass
class CountedStep(beam.PTransform, Generic[Rules]):
    """Turns every element into another, independently; may count it when done.

    Attributes:
      progress_folder: where the counts are noted; None for no progress.
      counted: the elements' name in the progress display; None if it does not show the step.
    """

    rules: Rules
    progress_folder: str | None = None
    counted: ClassVar[str | None] = None

    @property
    def uses_gpu(self) -> bool:
        return False

    def expand(self, elements: beam.PCollection[Any]) -> beam.PCollection[Any]:
        step = beam.Map(self._make).with_output_types(get_type_hints(self.make)["return"])
        return elements | "Make" >> (on_gpu(step, elements.pipeline) if self.uses_gpu else step)

    @abc.abstractmethod
    def make(self, element: Any) -> Any:
        """Convert an element; the annotation is its type."""

    def size(self, element: Any) -> int:
        return 1

    def _make(self, element: Any) -> Any:
        result = self.make(element)
        if self.counted is not None:
            progress.count(self.progress_folder, self.counted, self.size(element))
        return result


class WithResource(beam.DoFn):
    """Holds one resource per worker; `make` converts an element with its help.

    The resource is pickled before its first use, and closed when the worker ends.
    """

    def __init__(self, resource: Any, make: Callable[[Any, Any], Iterator[Any]]) -> None:
        self.resource, self.make = resource, make

    def process(self, element: Any) -> Iterator[Any]:
        return self.make(element, self.resource)

    def teardown(self) -> None:
        self.resource.close()
