"""A step of which each worker holds a resource, such as a child process."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import apache_beam as beam


class Resource(Protocol):
    """What is closed when a worker ends; pickled before it is used first."""

    def close(self) -> None: ...


class WithResource(beam.DoFn):
    """Holds one resource for each worker.

    Args:
      resource: what is held.
      make: yields what an element becomes, with the help of the resource.
    """

    def __init__(self, resource: Resource, make: Callable[[Any, Any], Iterator[Any]]) -> None:
        self.resource, self.make = resource, make

    def process(self, element: Any) -> Iterator[Any]:
        return self.make(element, self.resource)

    def teardown(self) -> None:
        self.resource.close()
