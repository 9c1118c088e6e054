"""A part of a pipeline that is described without Beam, whose import takes seconds."""

import abc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import apache_beam as beam


class Composite(abc.ABC):
    """What a composite transform of Beam is made of once a pipeline is wired.

    A label makes it one: `"ReadPlan" >> ReadPlan(files, Clip)`.
    """

    def __rrshift__(self, label: str) -> "beam.PTransform":
        """Returns Beam's transform, under a label."""
        import apache_beam as beam

        return label >> beam.ptransform_fn(self.expand)()

    @abc.abstractmethod
    def expand(self, inputs: Any) -> Any:
        """Returns the collections that come of the input's."""
