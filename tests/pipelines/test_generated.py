"""Which pairs of a plan a run builds, and from what."""

from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.pipelines.base.generated import select_pairs
from eqforge.pipelines.base.identity import input_file
from eqforge.pipelines.base.pipeline import RunSettings

NAMES = [f"d/{number:03d}" for number in range(200)]


def selected(**settings: Any) -> list[str]:
    return list(select_pairs(NAMES, str, RunSettings(output="out", **settings)))


def test_all_are_built_where_nothing_is_asked_for() -> None:
    assert selected() == NAMES


def test_a_limit_takes_the_first() -> None:
    assert selected(limit=3) == NAMES[:3]
    assert selected(limit=0) == []


def test_a_larger_share_holds_the_smaller_one() -> None:
    tenth, half = selected(sample="10%"), selected(sample="50%")

    assert 5 < len(tenth) < 40
    assert 70 < len(half) < 130
    assert set(tenth) < set(half)


def test_samples_are_named_one_by_one_in_the_order_of_the_plan() -> None:
    assert selected(only=("d/007", "d/003")) == ["d/003", "d/007"]


@pytest.mark.parametrize("settings", [{"only": ("d/999",)}, {"only": ("d/007",), "limit": 0}])
def test_a_sample_that_is_named_and_not_there_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=settings["only"][0]):
        selected(**settings)


def test_a_dataset_may_be_made_from_a_url() -> None:
    url = "memory://assets/manifest.json"
    with pytest.raises(InputError, match="no such file"):
        input_file(url)
    storage.write_bytes(url, b"{}")

    made_from = input_file(url)

    assert (made_from.name, made_from.sha256) == ("manifest.json", sha256_hex(b"{}"))
