from collections import Counter
from pathlib import Path

import apache_beam as beam
from apache_beam.testing.util import assert_that, equal_to

from eqforge.transforms.engines import progress
from eqforge.transforms.engines.counted_step import CountedStep


class Multiplied(CountedStep[int]):
    """Multiplies numbers."""

    counted = "multiplied"

    def make(self, number: int) -> float:
        return 0.5 * self.rules * number


def test_every_element_is_made_by_the_rules_and_counted(tmp_path: Path) -> None:
    with beam.Pipeline() as root:
        made = root | beam.Create([1, 2, 3]) | Multiplied(3, str(tmp_path))
        assert_that(made, equal_to([1.5, 3.0, 4.5]))
    assert made.element_type is float
    assert progress.totals(str(tmp_path)) == Counter(multiplied=3)
