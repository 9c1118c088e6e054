import re

import pytest

from eqforge.schemas.card import dataset_card
from eqforge.schemas.manifest import DataFile, Manifest, StageBooks


def card_of(dataset: str, *tables: str, empty: tuple[str, ...] = ()) -> str:
    """The card of a dataset with one file in each table."""
    files = {
        name: [DataFile(path=f"data/{name}-00000-of-00001.parquet", rows=7, num_bytes=9, sha256="")]
        for name in tables
    }
    return dataset_card(
        Manifest(
            dataset=dataset,
            mode="corrected",
            config={},
            inputs=[],
            versions={"eqforge": "1"},
            stages={"captions": StageBooks(candidates=9, kept=7, rejected=2, reasons={"odd": 2})},
            tables={**files, **{name: [] for name in empty}},
        )
    )


def test_the_header_has_one_configuration_for_each_table_that_has_files() -> None:
    card = card_of("retrieval-perturbations", "samples", "captions", "rejects", empty=("images",))

    assert card.startswith(
        "---\n"
        "configs:\n"
        "- config_name: samples\n"
        "  data_files: data/samples-*.parquet\n"
        "  default: true\n"
        "- config_name: captions\n"
        "  data_files: data/captions-*.parquet\n"
        "- config_name: rejects\n"
        "  data_files: data/rejects-*.parquet\n"
        "---\n"
    )
    assert "data/images" not in card


@pytest.mark.parametrize(
    ("dataset", "columns"),
    [
        ("eq-youcook2", {"caption_0", "image_1_id", "origin_0"}),
        ("hard-positives", {"hard_positive", "hard_negative", "caption"}),
        ("training-captions", {"caption_id", "role"}),
        ("retrieval-perturbations", {"applied", "perturbed_caption", "reason"}),
        ("vlue", {"task", "sample_id", "findings"}),
    ],
)
def test_the_card_says_what_a_row_of_its_dataset_is(dataset: str, columns: set[str]) -> None:
    card = card_of(dataset, "samples", "rejects")
    named = set(re.findall(r"`(\w+)`", card))

    assert columns <= named
    assert ("caption_0" in named) == (dataset == "eq-youcook2")


def test_the_card_of_generated_pairs_says_what_made_them_and_what_a_mask_is() -> None:
    with_masks = card_of("eq-kubric", "samples", "images", "masks", "rejects")
    without = card_of("eq-sd", "samples", "images", "rejects", empty=("masks",))

    assert all(
        "`generation`" in card and "`origin_0`" not in card for card in (with_masks, without)
    )
    assert "`mask_0_id`" in with_masks
    assert "`mask_0_id`" not in without


def test_pictures_are_explained_where_there_are_any() -> None:
    with_images = card_of("hard-positives", "samples", "images", "rejects")
    assert "`image_id` a key into `images`" in with_images
    assert "no pictures are included" in card_of("hard-positives", "samples", "rejects")


def test_the_card_shows_the_books() -> None:
    card = card_of("hard-positives", "samples")
    assert "| captions | 9 | 7 | 2 |" in card
    assert "| captions | odd | 2 |" in card
