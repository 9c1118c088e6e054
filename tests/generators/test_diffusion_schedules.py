import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.control import cross_schedule, span_bounds

WORDS = {"cat": (2, 3), "hat": (6,)}


def find(word):
    return WORDS[word]


def plain_reference(spans, steps, tokens=8):
    """The table, entry by entry, from the definition of a bound: int(fraction * rows)."""
    table = []
    for row in range(steps + 1):
        line = []
        for token in range(tokens):
            span = spans.get("default_", (0.0, 1.0))
            for word, own in spans.items():
                if word != "default_" and token in WORDS[word]:
                    span = own
            start, end = span if isinstance(span, tuple) else (0.0, span)
            line.append(float(int(start * (steps + 1)) <= row < int(end * (steps + 1))))
        table.append(line)
    return np.array(table)


@pytest.mark.parametrize("steps", [4, 10, 50])
@pytest.mark.parametrize(
    "spans",
    [
        {"default_": 0.8},
        {"default_": (0.2, 0.6)},
        {"cat": (0.0, 0.3)},
        {"default_": 0.4, "cat": (0.5, 1.0), "hat": 0.1},
        {"default_": 0.0},
        {"default_": 1.0},
    ],
)
def test_the_schedule_is_the_plain_definition(spans, steps):
    assert np.array_equal(cross_schedule(spans, steps, 8, find), plain_reference(spans, steps))


def test_a_number_is_the_span_of_all_words():
    expected = plain_reference({"default_": 0.8}, 50)
    assert np.array_equal(cross_schedule(0.8, 50, 8, find), expected)
    assert expected[:, 0].sum() == 40  # int(0.8 * 51)


def test_bounds_are_cut_not_rounded():
    assert span_bounds(0.4, 4) == range(0, 1)
    assert span_bounds((0.25, 0.75), 50) == range(12, 37)


@pytest.mark.parametrize("span", [-0.1, 1.1, (0.5, 0.2), (0.0, 2.0)])
def test_a_span_outside_the_steps_is_an_error(span):
    with pytest.raises(InputError, match="fraction"):
        span_bounds(span, 50)
