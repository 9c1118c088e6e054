import re
from typing import Any

import pytest

from eqforge.schemas.dataset.card import dataset_card
from eqforge.schemas.dataset.manifest import DataFile, Manifest, StageBooks

yaml = pytest.importorskip("yaml")


def card_of(
    dataset: str,
    *tables: str,
    empty: tuple[str, ...] = (),
    splits: dict[str, set[str]] | None = None,
    rows: dict[str, int] | None = None,
) -> str:
    """The card of a dataset with one file of seven rows in each table, or of as many as said."""
    files = {
        name: [
            DataFile(path=f"data/{name}-00000-of-00001.parquet", rows=count, num_bytes=9, sha256="")
        ]
        for name, count in (dict.fromkeys(tables, 7) | (rows or {})).items()
    }
    manifest = Manifest(
        dataset=dataset,
        mode="corrected",
        config={},
        inputs=[],
        versions={"eqforge": "1"},
        stages={"captions": StageBooks(candidates=9, kept=7, rejected=2, reasons={"odd": 2})},
        tables={**files, **{name: [] for name in empty}},
    )
    return dataset_card(manifest, splits or {})


def yaml_of(card: str) -> Any:
    return yaml.safe_load(card.split("---\n")[1])


def test_every_table_with_rows_has_a_configuration_and_the_pictures_are_first() -> None:
    card = card_of(
        "retrieval-perturbations", "samples", "images", "rejects", splits={"samples": {"test"}}
    )

    assert card.startswith(
        "---\n"
        "configs:\n"
        "- config_name: images\n"
        "  default: true\n"
        "  data_files:\n"
        '  - split: "full"\n'
        "    path: data/images-*.parquet\n"
        "- config_name: samples\n"
        "  data_files:\n"
        '  - split: "test"\n'
        "    path: data/samples-*.parquet\n"
        "- config_name: rejects\n"
        "  data_files:\n"
        '  - split: "full"\n'
        "    path: data/rejects-*.parquet\n"
        "---\n"
    )


def test_rows_of_several_splits_have_a_configuration_for_each() -> None:
    card = card_of("simat", "samples", splits={"samples": {"test", "no", "all"}})

    configured = yaml_of(card)["configs"]
    assert [(one["config_name"], one["data_files"][0]["split"]) for one in configured] == [
        ("samples", "full"),
        ("samples-full", "full"),
        ("samples-no", "no"),
        ("samples-test", "test"),
    ]
    assert configured[2]["filters"] == [["split", "==", "no"]]


def test_tables_without_rows_have_no_configuration_and_the_card_says_why() -> None:
    card = card_of("vlue", "samples", rows={"rejects": 0})

    assert [one["config_name"] for one in yaml_of(card)["configs"]] == ["samples"]
    assert "cannot load them: `rejects`." in card


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
