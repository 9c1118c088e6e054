import re
from typing import Any

import pytest

from eqforge.schemas.dataset.about import About, Author
from eqforge.schemas.dataset.card import dataset_card
from eqforge.schemas.dataset.manifest import DataFile, InputFile, Manifest, StageCounts
from eqforge.schemas.dataset.profile import Facts, Profile
from eqforge.schemas.dataset.statements import tools
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import DATASETS, dataset_type

yaml = pytest.importorskip("yaml")


def card_of(
    dataset: str,
    *tables: str,
    empty: tuple[str, ...] = (),
    splits: dict[str, set[str]] | None = None,
    rows: dict[str, int] | None = None,
    **more: Any,
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
        stages={"captions": StageCounts(candidates=9, kept=7, rejected=2, reasons={"odd": 2})},
        tables={**files, **{name: [] for name in empty}},
    )
    counts = {table: dict.fromkeys(sorted(names), 1) for table, names in (splits or {}).items()}
    return dataset_card(Profile(manifest=manifest, facts=Facts(splits=counts), **more))


def yaml_of(card: str) -> Any:
    return yaml.safe_load(card.split("---\n")[1])


def test_every_table_with_rows_has_a_configuration_and_the_samples_are_first() -> None:
    card = card_of(
        "retrieval-perturbations", "samples", "images", "rejects", splits={"samples": {"test"}}
    )

    assert yaml_of(card)["configs"] == [
        {
            "config_name": "samples",
            "default": True,
            "data_files": [{"split": "test", "path": "data/samples-*.parquet"}],
        },
        {
            "config_name": "images",
            "data_files": [{"split": "full", "path": "data/images-*.parquet"}],
        },
        {
            "config_name": "rejects",
            "data_files": [{"split": "full", "path": "data/rejects-*.parquet"}],
        },
    ]


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


MASKS = "`mask_0_id` and `mask_1_id` are keys into `masks`"
RULES = "no person has checked them"
WORDS = About(uses=("Testing models.",), social_impact="None is known.", maintenance="Monthly.")


@pytest.mark.parametrize(
    ("card", "said", "unsaid"),
    [
        (card_of("eq-kubric", "samples", "masks"), ("`generation`", MASKS), ("`origin_0`",)),
        (card_of("eq-sd", "samples", empty=("masks",)), ("`generation`",), ("`origin_0`", MASKS)),
        (
            card_of("hard-positives", "samples", "images"),
            ("`image_id` is a key into `images`",),
            (),
        ),
        (
            card_of("hard-positives", "samples"),
            ("no images are included", "| captions | 9 | 7 | 2 |", "| captions | odd | 2 |"),
            ("## Warnings",),
        ),
        (
            card_of("sugar-crepe", "samples"),
            (
                "eqforge does not know who wrote or checked them",
                "Imported by eqforge",
                "The rows are unchanged, including",
                "Derived from existing data (the files listed in its manifest)",
            ),
            ("annotations_creators", RULES, "aper mode"),
        ),
        (
            card_of("sugar-crepe", "samples", about=WORDS),
            (
                "## Uses\n\n- Testing models.\n- None is known.\n",
                "- Maintenance: Monthly.",
                "The source states the licence of the texts: MIT.",
            ),
            (),
        ),
    ],
    ids=["masks", "no masks", "pictures", "no pictures", "import", "words"],
)
def test_a_card_says_what_is_known(
    card: str, said: tuple[str, ...], unsaid: tuple[str, ...]
) -> None:
    assert [text for text in said if text not in card] == []
    assert [text for text in unsaid if text in card] == []


@pytest.mark.parametrize("dataset", sorted({*DATASETS, *BENCHMARKS}))
def test_every_column_of_the_samples_has_a_meaning(dataset: str) -> None:
    card = card_of(dataset, "samples")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", card, re.MULTILINE)
    assert [name for name, _ in rows] == dataset_type(dataset).table("samples").schema.names


def test_the_hub_reads_the_metadata_and_writes_the_same() -> None:
    hub = pytest.importorskip("huggingface_hub")
    about = About(
        title="Kitchens: 台所 # 1",
        licence="CC-BY-4.0",
        languages=("en", "pt-BR"),
        tags=("kitchens",),
        annotation="Two students looked at every row.",
    )
    card = card_of("eq-video", "samples", "images", splits={"samples": {"a", "b"}}, about=about)

    read = hub.DatasetCard(card)
    assert str(read) == card
    found = read.data.to_dict()
    assert found["pretty_name"] == "Kitchens: 台所 # 1"
    assert (found["license"], found["language"]) == ("cc-by-4.0", ["en", "pt-BR"])
    assert found["size_categories"] == "n<1K"
    assert found["tags"][:2] == ["kitchens", "eqforge"]
    assert "annotations_creators" not in found
    assert [one["config_name"] for one in found["configs"]] == [
        *("samples", "samples-a", "samples-b", "images")
    ]
    assert read.text.lstrip().startswith("# Kitchens: 台所 ")


@pytest.mark.parametrize(
    ("rows", "size"),
    [(0, "n<1K"), (999, "n<1K"), (1_000, "1K<n<10K"), (99_999, "10K<n<100K"), (10**6, "n>1M")],
)
def test_the_size_is_the_hubs(rows: int, size: str) -> None:
    assert yaml_of(card_of("vlue", rows={"samples": rows}))["size_categories"] == size


def test_the_card_says_where_from_why_not_and_how_again() -> None:
    stage = Stage("captions", {"odd": "It is odd."})
    author = Author(name="Ada", affiliation="Example University")
    about = About(authors=(author,), licence="MIT", licence_url="https://example.org/licence")
    card = card_of(
        "hard-positives",
        "samples",
        stages=(stage,),
        commands=("eqforge build hard-positives --output path/to/hard-positives",),
        about=about,
    )
    assert "| captions | odd | 2 | It is odd. |" in card
    assert "```console\n$ eqforge build hard-positives --output" in card
    assert "@inproceedings{kamath2024hard," in card
    assert "[MIT](https://example.org/licence)" in card
    assert yaml_of(card)["license"] == "other"
    assert yaml_of(card)["license_link"] == "https://example.org/licence"
    assert "- Ada, Example University" in card
    assert "## Warnings" not in card


def test_licences_are_counted_and_those_that_are_not_stated_are_named() -> None:
    manifest = Manifest(
        dataset="eq-video",
        mode="paper",
        config={"run": {"limit": 3, "only": [], "sample": "100%"}, "face_policy": "either"},
        inputs=[InputFile(name="mine.csv", sha256="0" * 64)],
        versions={},
        stages={},
        tables={},
        warnings=["Beware."],
    )
    facts = Facts(licences={"": 2, "CC0-1.0": 5}, sources=7)
    card = dataset_card(Profile(manifest=manifest, facts=facts))

    assert "| none | 2 |\n| CC0-1.0 | 5 |" in card
    assert "from 7 sources" in card
    assert "part of the whole dataset: limit 3." in card
    assert "keeps the defects of the published dataset" in card
    assert card.count("Beware.") == 1
    assert "no images; the texts were not searched" in card


def test_what_else_is_installed_is_no_tool() -> None:
    manifest = Manifest(
        dataset="eq-video", mode="corrected", config={}, inputs=[], stages={}, tables={},
        versions={"eqforge": "1", "torch": "2", "python": "3"},
    )  # fmt: skip
    assert list(tools(Profile(manifest=manifest))) == ["eqforge 1"]
