"""`--redistributable` against licences that were written by hand."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from eqforge import cli
from eqforge.schemas.tables.pairs import PairSample
from eqforge.transforms.export.formats import FORMATS
from tests.exported import check_note, files, pairs, picture, refused, run, small, write_pairs
from tests.statuses import status_of

main = status_of(cli.main)
LICENCES = [
    ("CC BY 4.0", "CC0-1.0"),
    ("CC-BY-4.0", None),
    (None, None),
    ("https://creativecommons.org/licenses/by-nd/4.0/", "CC-BY-4.0"),
    ("Ⓒ\x1b[2J", "CC-BY-ND-4.0"),
    ("cc-by-sa-4.0", "MIT"),
]
KEPT = (0, 5)
LEFT_OUT = {"not stated": 2, "CC-BY-ND-4.0": 1, "CC-BY-ND-4.0, \\u24b8\\x1b[2J": 1}


def licensed() -> list[PairSample]:
    (samples,) = pairs(len(LICENCES)).values()
    return [
        replace(
            each,
            origin_0=replace(each.origin_0, licence=first),
            origin_1=replace(each.origin_1, licence=second),
        )
        for each, (first, second) in zip(samples, LICENCES, strict=True)
    ]


def dataset(folder: Path, shards: int = 2, seed: int = 0) -> Path:
    folder.mkdir()
    samples = licensed()
    random.Random(seed).shuffle(samples)
    return write_pairs(folder, samples, [picture(n) for n in range(len(LICENCES) + 1)], shards)


def test_a_pair_is_kept_if_both_pictures_may_be_passed_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run(dataset(tmp_path / "in"), "jsonl", tmp_path / "out", "--redistributable")

    assert "left out 4 rows: not stated (2), " in capsys.readouterr().out
    assert check_note(output)["left_out"] == LEFT_OUT
    found = [json.loads(line) for line in (output / "test.jsonl").read_text().splitlines()]
    expected = {licensed()[number].sample_id: licensed()[number] for number in KEPT}
    assert {row["sample_id"]: row["caption_0"] for row in found} == {
        name: each.caption_0 for name, each in expected.items()
    }
    assert [row["sample_id"] for row in found] == sorted(expected)


@pytest.mark.parametrize("form", ["pairs", "hf", "webdataset", "imagefolder", "eqben", "karpathy"])
def test_no_format_has_what_was_left_out(form: str, tmp_path: Path) -> None:
    outputs = [
        run(
            dataset(tmp_path / f"in{n}", n, seed=n), form, tmp_path / f"out{n}", "--redistributable"
        )
        for n in (1, 3)
    ]

    first, second = map(files, outputs)
    del first["eqforge-export.json"], second["eqforge-export.json"]
    assert first == second
    assert check_note(outputs[0])["left_out"] == LEFT_OUT
    data = b"".join(first.values())
    shown = {number + side for number in KEPT for side in (0, 1)}
    for number in range(len(LICENCES) + 1):
        if form != "karpathy":
            assert (picture(number) in data) == (number in shown), number
    if form in ("pairs", "hf"):
        assert "not stated: 2" in first["README.md"].decode()


def test_formats_are_all_known_to_the_filter(tmp_path: Path) -> None:
    """Each format writes the two rows, or cannot write such rows at all."""
    there = dataset(tmp_path / "in")
    for form in FORMATS:
        argv = ["export", str(there), "--format", form, "--redistributable"]
        plain = main([*argv[:-1], "--output", str(tmp_path / f"plain-{form}")])
        status = main([*argv, "--output", str(tmp_path / form)])
        assert status == (2 if form == "recipe" else plain)


def test_nothing_left_and_pictures_are_errors_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    there = small(tmp_path / "in")

    said = refused(capsys, there, "hf", tmp_path / "out", "--redistributable")

    assert "leaves out all 9 rows, because no licence" in said
    assert "Rows by licence: not stated (9)." in said
    assert "--format recipe" in said
    images = refused(capsys, there, "hf", tmp_path / "out", "--table", "images")
    assert "--table images: this table cannot be exported alone" in images
    assert not (tmp_path / "out").exists()
    recipe = refused(capsys, there, "recipe", tmp_path / "out", "--redistributable")
    assert "contains no images or text; omit --redistributable" in recipe


def test_the_texts_of_a_benchmark_have_its_licence_and_its_pictures_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.jpg").write_bytes(picture(1, "JPEG"))
    record = {"filename": "1.jpg", "caption": "a cat", "negative_caption": "a dog"}
    source = tmp_path / "swap_obj.json"
    source.write_text(json.dumps({"0": record}))
    argv = ["import", "sugar-crepe", str(source), "--output"]
    assert main([*argv, str(tmp_path / "texts")]) == 0
    assert main([*argv, str(tmp_path / "shown"), "--images", str(tmp_path / "images")]) == 0

    kept = run(tmp_path / "texts", "sugar-crepe", tmp_path / "out", "--redistributable")
    assert check_note(kept)["left_out"] == {}
    assert json.loads((kept / "swap_obj.json").read_text())["0"]["caption"] == "a cat"
    said = refused(capsys, tmp_path / "shown", "jsonl", tmp_path / "x", "--redistributable")
    assert "Rows by licence: not stated (1)." in said


def test_a_record_of_your_own_may_state_its_licence(tmp_path: Path) -> None:
    lines = []
    for number, licence in enumerate(("CC-BY-4.0", "CC-BY-ND-4.0", 7, "")):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
        texts = {"caption": f"猫 {number}", "hard_negative": f"犬 {number}"}
        lines.append({"id": str(number), "image": f"{number}.png", **texts, "license": licence})
    source = tmp_path / "foils.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ["import", "own-foils", str(source), "--images", str(tmp_path)]
    assert main([*given, "--output", str(tmp_path / "in")]) == 0

    output = run(tmp_path / "in", "jsonl", tmp_path / "out", "--redistributable")

    assert check_note(output)["left_out"] == {"not stated": 2, "CC-BY-ND-4.0": 1}
    (line,) = (output / "test.jsonl").read_text().splitlines()
    assert json.loads(line)["caption"] == "猫 0"


def stating(folder: Path, *annotations: dict[str, object]) -> Path:
    """An import of pairs whose records have more fields."""
    for number in range(2):
        (folder / f"{number}.png").write_bytes(picture(number))
    pair = {"image_0": "0.png", "image_1": "1.png", "caption_0": "猫", "caption_1": "犬"}
    source = folder / "pairs.jsonl"
    lines = [{"id": f"{n}", **pair, **each} for n, each in enumerate(annotations)]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ["import", "own-pairs", str(source), "--images", str(folder)]
    assert main([*given, "--output", str(folder / "in")]) == 0
    return folder / "in"


def test_each_picture_states_a_licence_and_no_statement_is_passed_over(tmp_path: Path) -> None:
    free, bound = {"licence": "CC-BY-4.0"}, "all rights reserved"
    there = stating(
        tmp_path,
        {"origin_0": free},
        {"origin_0": free, "origin_1": {}},
        {"origin_0": free, "origin_1": free, "licence": bound},
        {"licence": "CC-BY-4.0", "license": bound},
        {"licence": "CC-BY-4.0", "license": [bound]},
        {"origin_0": free, "origin_1": free},
        {"license": "CC0-1.0"},
    )

    output = run(there, "jsonl", tmp_path / "out", "--redistributable")

    assert check_note(output)["left_out"] == {"not stated": 3, "all rights reserved": 2}
    found = [json.loads(line) for line in (output / "test.jsonl").read_text().splitlines()]
    assert [row["sample_id"] for row in found] == ["own-pairs/5", "own-pairs/6"]


def test_the_card_counts_the_licences_that_the_export_goes_by(tmp_path: Path) -> None:
    free = {"licence": "CC-BY-4.0"}
    there = stating(tmp_path, {"origin_0": free, "origin_1": {"licence": "CC0-1.0"}})
    card = (there / "README.md").read_text()
    assert "| CC-BY-4.0 | 1 |\n| CC0-1.0 | 1 |" in card
    for name in "bc":
        (tmp_path / name).mkdir()
    silent = stating(tmp_path / "c", {"note": "licence unknown"})
    assert "licence that the sources state" not in (silent / "README.md").read_text()
    other = stating(tmp_path / "b", {"id": "b", "license": "CC-BY-4.0"})
    assert "| CC-BY-4.0 | 2 |" in (other / "README.md").read_text()
    said = json.loads((other / "croissant.json").read_text())
    assert "CC-BY-4.0: 2 sources" in said["rai:dataCollectionRawData"]

    both = tmp_path / "both"
    assert main(["combine", str(there), str(other), "--output", str(both)]) == 0
    assert "| own-pairs | CC-BY-4.0 | 2 |" in (both / "README.md").read_text()


@pytest.mark.parametrize("form", ["pairs", "hf", "imagefolder", "webdataset"])
def test_the_author_s_words_stay_and_what_is_here_is_counted(form: str, tmp_path: Path) -> None:
    free: dict[str, object] = {"license": "CC-BY-4.0"}
    there = stating(tmp_path, free, {}, free)
    words = 'title = "Cups"\nlicence = "MIT"\nlanguages = ["ja"]\ndescription = "Cups of tea."\n'
    words += 'citation = "@misc{cups}"\n[[authors]]\nname = "Ada"\n'
    (tmp_path / "about.toml").write_text(words)
    assert main(["card", str(there), "--about", str(tmp_path / "about.toml")]) == 0

    output = run(there, form, tmp_path / "out", "--redistributable")

    card = (output / "README.md").read_text()
    for said in ("\n# Cups\n", "\nlicense: mit\n", "@misc{cups}", "- Ada", "Cups of tea.",
                 "| `caption_0` |", "under MIT",
                 "It has 2 samples and 2 images from 2 named pictures.", "not stated: 1",
                 "size_categories: n<1K"):  # fmt: skip
        assert said in card, said
    assert card.count("contains only rows whose sources") == 1
    assert "3 samples" not in card
    assert "ja" in card.split("---\n")[1]
    assert card.index("configs:") < card.index("\n---\n", 4)
    if form in ("pairs", "hf"):
        croissant = json.loads((output / "croissant.json").read_text())
        assert croissant["description"].startswith("Cups of tea. ")
        assert croissant["description"].endswith(
            "It has 2 samples and 2 images from 2 named pictures."
        )
        steps = croissant["rai:dataPreprocessingProtocol"]
        assert steps[-1].startswith("Export: 2 of 3 rows of samples were kept")
