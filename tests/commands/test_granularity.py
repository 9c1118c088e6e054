import dataclasses
from collections.abc import Iterator
from typing import Any

from eqforge.commands.inspection import _granularity
from eqforge.schemas.tables.texts import MeasuredCaption

ABOUT = ["caption_id", "image", "image_id", "split", "caption", "tagger"]
NAMES = [field.name for field in dataclasses.fields(MeasuredCaption)][len(ABOUT) :]


@dataclasses.dataclass
class Captions:
    """Stands for a dataset; each caption has an image, a number of words and a depth of nouns."""

    found: list[tuple[str, int, float | None]]

    def rows(self, table: str, columns: list[str]) -> Iterator[dict[str, Any]]:
        assert table == "captions"
        for number, (image, words, depth) in enumerate(self.found):
            row = dict.fromkeys(NAMES, 0) | {"words": words, "noun_depth": depth}
            yield row | {"image": image, "caption_id": str(number), "concept_depth": None}


def shown(*found: tuple[str, int, float | None]) -> dict[str, tuple[str, ...]]:
    table: Any = _granularity(Captions([*found]))  # type: ignore[arg-type]
    name, *others = (list(column.cells) for column in table.columns)
    return dict(zip(name, zip(*others, strict=True), strict=True))


def test_means_are_over_the_captions_that_have_a_feature() -> None:
    found = shown(("a", 4, 1.0), ("a", 4, None), ("b", 10, 3.0))

    assert list(found) == NAMES
    assert found["words"] == ("3", "6.000", "4.000", "10.000")
    assert found["noun_depth"] == ("2", "2.000", "1.000", "3.000")
    assert found["concept_depth"] == ("0", "", "", "")


def test_a_single_image_has_no_interval_and_no_captions_have_no_mean() -> None:
    assert shown(("a", 4, 1.0), ("a", 6, 1.0))["words"] == ("2", "5.000", "", "")
    assert set(shown().values()) == {("0", "", "", "")}
