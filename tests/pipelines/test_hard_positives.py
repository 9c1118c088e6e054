import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.commands import verify
from eqforge.pipelines import hard_positives
from eqforge.schemas.dataset.manifest import Certificate
from eqforge.schemas.dataset.reader import open_dataset

RECORDS: dict[str, list[Any]] = {
    "Attribute/vg/color.json": [
        ["VG/1.jpg", {"POS": ["a red car"], "NEG": ["a blue car"]}],
        ["VG/1.jpg", {"POS": ["a red car"], "NEG": ["a blue car"]}],
        ["VG/2.jpg", {"POS": ["a covered red barn"], "NEG": ["a covered blue barn"]}],
        ["VG/3.jpg", {"POS": ["a shiny car"], "NEG": ["a dull car"]}],
    ],
    "Relation/vg/spatial.json": [
        ["VG/4.jpg", {"POS": ["cup near plate"], "NEG": ["cup far from plate"]}]
    ],
}


@pytest.fixture
def checklist(tmp_path: Path) -> Path:
    """A VL-CheckList folder of five records."""
    for kind, names in (
        ("Attribute/vg", ("action", "color", "size", "state")),
        ("Relation/vg", ("spatial", "action")),
    ):
        (tmp_path / "vl" / kind).mkdir(parents=True)
        for name in names:
            path = f"{kind}/{name}.json"
            (tmp_path / "vl" / path).write_text(json.dumps(RECORDS.get(path, [])))
    return tmp_path / "vl"


def build(output: Path, *arguments: object) -> list[dict[str, Any]]:
    assert hard_positives.main([*map(str, arguments), "--output", str(output)]) == 0
    assert verify.main([str(output)]) == 0
    return list(open_dataset(str(output)).rows("samples"))


def test_corrected_mode_rewords_the_foiled_word_alone(checklist: Path, tmp_path: Path) -> None:
    rows = build(tmp_path / "out", "--vl-checklist", checklist)

    assert {row["caption"]: row["hard_positive"] for row in rows} == {
        "a red car": "a red-colored car",
        "cup near plate": "cup close to plate",
    }
    reasons = {r["reason"] for r in open_dataset(str(tmp_path / "out")).rows("rejects")}
    assert reasons == {"duplicate", "foil_not_reworded", "negative_not_clear"}


def test_one_s_own_lexicon_replaces_the_foiled_word(checklist: Path, tmp_path: Path) -> None:
    lexicon = tmp_path / "own.tsv"
    header = "kind\tgroup\tword\treplacement\tsynonymy\tsource\n"
    lexicon.write_text(f"{header}attribute\tcolor\tred\tscarlet\tfull\tmine\n")

    rows = build(tmp_path / "out", "--vl-checklist", checklist, "--lexicon", lexicon)

    assert sorted((row["hard_positive"], row["replacement"]) for row in rows) == [
        ("a covered scarlet barn", "scarlet"),
        ("a scarlet car", "scarlet"),
    ]


def test_paper_mode_keeps_duplicates_and_edits_inside_words(
    checklist: Path, tmp_path: Path
) -> None:
    rows = build(tmp_path / "out", "--vl-checklist", checklist, "--mode", "paper")

    assert sorted(row["hard_positive"] for row in rows) == [
        "a covecrimson crimson barn",
        "a crimson car",
        "a crimson car",
        "cup next to plate",
    ]


def test_images_are_embedded_as_they_are_and_a_missing_one_is_a_reject(
    checklist: Path, tmp_path: Path
) -> None:
    (tmp_path / "images" / "VG").mkdir(parents=True)
    picture = tmp_path / "images" / "VG" / "1.jpg"
    Image.new("RGB", (40, 30), "red").save(picture)

    rows = build(tmp_path / "out", "--vl-checklist", checklist, "--images", tmp_path / "images")

    dataset = open_dataset(str(tmp_path / "out"))
    (image,) = dataset.rows("images")
    assert image["image"]["bytes"] == picture.read_bytes()
    assert [row["image_id"] for row in rows] == [image["image_id"]]
    missing = [r for r in dataset.rows("rejects") if r["reason"] == "image_missing"]
    assert sorted(r["source_id"] for r in missing) == ["VG/2.jpg", "VG/3.jpg", "VG/4.jpg"]


IDENTITIES = (
    ("the white snow and the black snow", "the black snow and the white snow"),
    ("the tall tree and the short tree", "the short tree, and the tall tree."),
)


def write_numbered(path: Path, records: Iterable[Any]) -> Path:
    """Writes a JSON object whose keys, the ids of the records, are their numbers from 1."""
    path.write_text(json.dumps({str(n): record for n, record in enumerate(records, 1)}))
    return path


def aro(image: str, caption: str, negative: str, **more: object) -> dict[str, object]:
    """A record of ARO's Visual Genome Attribution."""
    return {"image_path": image, "true_caption": caption, "false_caption": negative, **more}


def test_a_swap_that_says_what_the_negative_says_is_refused_but_in_paper_mode(
    tmp_path: Path,
) -> None:
    records = [aro(f"{number}.jpg", *texts) for number, texts in enumerate(IDENTITIES)]
    records.append(aro("2.jpg", "the red car and the old dog", "the old car and the red dog"))
    pairs = write_numbered(tmp_path / "pairs.json", records)

    (row,) = build(tmp_path / "corrected", "--pairs", pairs)

    assert row["hard_positive"] == "the old dog and the red car"
    rejects = list(open_dataset(str(tmp_path / "corrected")).rows("rejects"))
    assert [reject["reason"] for reject in rejects] == ["hard_positive_equals_negative"] * 2
    published = build(tmp_path / "paper", "--pairs", pairs, "--mode", "paper")
    assert [(row["hard_positive"], row["hard_negative"]) for row in published[:1]] == [
        (IDENTITIES[0][1], IDENTITIES[0][1])
    ]
    assert len(published) == 3


def test_swaps_are_reconciled_with_the_other_texts_of_the_image(tmp_path: Path) -> None:
    cat, dog = "the black cat and the old dog", "the old cat and the black dog"
    records = [
        aro("a.jpg", cat, dog),
        aro("a.jpg", cat, f"{dog}."),
        aro("b.jpg", cat, dog),
        aro("b.jpg", dog, "the red cat and the tall dog"),
        aro("c.jpg", cat, cat.upper()),
        aro("d.jpg", cat, dog),
        aro("d.jpg", "the black dog and the old cat", "the old dog and the black bird"),
    ]
    pairs = write_numbered(tmp_path / "pairs.json", records)

    rows = build(tmp_path / "out", "--pairs", pairs)

    rejects = open_dataset(str(tmp_path / "out")).rows("rejects")
    assert {reject["candidate_id"]: reject["reason"] for reject in rejects} == {
        "2": "duplicate",
        "3": "negative_true_elsewhere",
        "5": "negative_equals_positive",
        "7": "hard_positive_false_elsewhere",
    }
    assert sorted(row["sample_id"] for row in rows) == ["1", "4", "6"]


def box_of(x: int, y: int, width: int, height: int) -> dict[str, Any]:
    """A box as ARO writes it."""
    return {"bbox_x": x, "bbox_y": y, "bbox_w": width, "bbox_h": height}


@pytest.mark.parametrize("mode", ["paper", "corrected"])
def test_the_box_of_a_pair_is_cut_out_of_its_image(tmp_path: Path, mode: str) -> None:
    """Pixels are compared with Pillow's crop, which is what the authors' code calls."""
    (tmp_path / "images").mkdir()
    noise = np.random.default_rng(5).integers(0, 256, (30, 40, 3), np.uint8)
    picture = Image.fromarray(noise)
    picture.save(tmp_path / "images" / "a.png")
    texts = ("the black cat and the old dog", "the old cat and the black dog")
    records = [
        aro("a.png", *texts, **box_of(4, 6, 10, 5)),
        aro("a.png", texts[1], texts[0], **box_of(30, 20, 20, 30)),
        aro("a.png", *texts),
        aro("a.png", *texts, **box_of(40, 0, 5, 5)),
        aro("a.png", *texts, **box_of(0, 0, 0, 5)),
    ]
    pairs = write_numbered(tmp_path / "pairs.json", records)
    output = tmp_path / "out"

    rows = build(output, "--pairs", pairs, "--images", tmp_path / "images", "--mode", mode)

    dataset = open_dataset(str(output))
    images = {row["image_id"]: row for row in dataset.rows("images")}
    source = (tmp_path / "images" / "a.png").read_bytes()
    beyond = (30, 20, 50, 50) if mode == "paper" else (30, 20, 40, 30)
    inside, clipped, whole = sorted(rows, key=lambda row: row["source_order"])
    for row, corners in ((inside, (4, 6, 14, 11)), (clipped, beyond)):
        stored = images[row["image_id"]]
        cut = Image.open(io.BytesIO(stored["image"]["bytes"]))
        assert cut.tobytes() == picture.crop(corners).tobytes()
        assert (stored["width_px"], stored["height_px"]) == cut.size
        assert row["source_sha256"] == hashlib.sha256(source).hexdigest()
    assert clipped["box"] == {"x0": 30, "y0": 20, "x1": 50, "y1": 50}
    assert images[whole["image_id"]]["image"]["bytes"] == source
    assert (whole["box"], whole["source_sha256"]) == (None, None)
    rejects = dataset.rows("rejects")
    assert [(r["candidate_id"], r["stage"], r["reason"], r["detail"]) for r in rejects] == [
        ("4", "captions", "bad_box", "40,0,45,5"),
        ("5", "captions", "bad_box", "0,0,0,5"),
    ]


def test_free_captions_get_both_texts_by_rules(tmp_path: Path) -> None:
    captions = tmp_path / "captions.jsonl"
    lines = [
        {"image": "a.jpg", "caption": "A white dog sleeps under the table.", "id": "one"},
        {"image": "a.jpg", "caption": "A dog and a cat on a sofa.", "id": "two"},
        {"image": "b.jpg", "caption": "Zzz", "id": "three"},
    ]
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))

    rows = {row["sample_id"]: row for row in build(tmp_path / "out", "--captions", captions)}

    assert rows["two"]["hard_positive"] in (
        "A cat and a dog on a sofa.",
        "A dog and a cat on a couch.",
        "There are a dog and a cat on a sofa.",
    )
    assert rows["one"]["hard_positive"] in (
        "A white dog is sleeping under the table.",
        "A white dog sleeps underneath the table.",
    )
    assert all(row["hard_negative"] != row["caption"] for row in rows.values())
    assert "cat" not in rows["one"]["hard_negative"], "another caption of the image names a cat"
    (reject,) = open_dataset(str(tmp_path / "out")).rows("rejects")
    assert (reject["candidate_id"], reject["reason"]) == ("three", "no_rewording")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass one source"),
        (["--pairs", "p.json", "--vl-checklist", "."], "pass one source"),
        (["--pairs", "none.json"], "none.json: no such file"),
        (["--vl-checklist", ".", "--kinds", "colour"], "--kinds colour: expected attribute or"),
        (["--vl-checklist", ".", "--kinds"], "--kinds"),
        (
            ["--vl-checklist", ".", "--balance", "text"],
            "--balance text works only with --captions",
        ),
    ],
)
def test_a_wrong_source_is_one_message_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as left:
        hard_positives.main([*arguments, "--output", str(tmp_path / "out")])

    assert left.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


TOGETHER = (
    {"image": "a.jpg", "caption": "A white dog sleeps under the table.", "id": "one"},
    {"image": "b.jpg", "caption": "A man holds a red umbrella.", "id": "four"},
    {"image": "a.jpg", "caption": "A dog and a cat on a sofa.", "id": "two"},
    {"image": "a.jpg", "caption": "Zzz", "id": "three"},
    {"image": "b.jpg", "caption": "A woman holds a small blue bag.", "id": "five"},
)


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def parts(output: Path) -> dict[str, Any]:
    """Samples and rejects of a dataset, by id."""
    dataset = open_dataset(str(output))
    rows = {row["sample_id"]: row for row in dataset.rows("samples")}
    return rows | {row["candidate_id"]: row for row in dataset.rows("rejects")}


@pytest.mark.parametrize(
    ("source", "mode"),
    [("--captions", "corrected"), ("--vl-checklist", "corrected"), ("--vl-checklist", "paper")],
)
def test_every_record_alone_is_the_same_as_in_the_whole_dataset(
    checklist: Path, tmp_path: Path, source: str, mode: str
) -> None:
    captions = write_lines(tmp_path / "captions.jsonl", TOGETHER)
    command = (source, captions if source == "--captions" else checklist, "--mode", mode)
    build(tmp_path / "all", *command)

    for name, row in parts(tmp_path / "all").items():
        alone = tmp_path / name.replace("/", "-")
        build(alone, *command, "--only", name)
        assert parts(alone) == {name: row}


def test_a_name_that_only_begins_like_a_record_is_refused(
    checklist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "vl-checklist/attribute/color/0000025"
    command = ["--vl-checklist", str(checklist), "--only", name, "--output", str(tmp_path / "out")]

    with pytest.raises(SystemExit) as left:
        hard_positives.main(command)

    assert left.value.code == 2
    assert (
        f"--only {name}: after --limit and --sample, the plan contains no sample with"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


def test_the_limit_counts_texts_and_takes_the_last_image_whole(tmp_path: Path) -> None:
    captions = write_lines(tmp_path / "captions.jsonl", TOGETHER)
    whole, first = tmp_path / "all", tmp_path / "first"
    build(whole, "--captions", captions)
    build(first, "--captions", captions, "--limit", 1)

    names = ("one", "two", "three")
    assert parts(first) == {name: parts(whole)[name] for name in names}


def test_an_image_whose_texts_are_all_refused_is_not_in_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for name, colour in (("a.jpg", "red"), ("b.jpg", "blue")):
        Image.new("RGB", (40, 30), colour).save(tmp_path / "images" / name)
    captions = write_lines(
        tmp_path / "captions.jsonl",
        [{"image": "a.jpg", "caption": "Zzz", "id": "none"}, TOGETHER[1]],
    )

    rows = build(tmp_path / "out", "--captions", captions, "--images", tmp_path / "images")

    used = [row["image_id"] for row in open_dataset(str(tmp_path / "out")).rows("images")]
    assert used == [row["image_id"] for row in rows]


def test_a_text_that_no_model_can_use_is_a_reject_of_the_captions(tmp_path: Path) -> None:
    pair = {"image": "a.jpg", "caption": "a cat and a dog", "hard_negative": "a dog"}
    pairs = write_lines(
        tmp_path / "pairs.jsonl",
        [
            pair | {"id": "good"},
            pair | {"id": "blank", "hard_negative": " \u200b "},
            pair | {"id": "bell", "caption": "a cat \u0007 and a dog"},
            pair | {"id": "long", "hard_negative": "dog " * 600},
        ],
    )

    (row,) = build(tmp_path / "out", "--pairs", pairs)

    assert row["sample_id"] == "good"
    dataset = open_dataset(str(tmp_path / "out"))
    assert {r["candidate_id"]: (r["stage"], r["reason"]) for r in dataset.rows("rejects")} == {
        "blank": ("captions", "empty_caption"),
        "bell": ("captions", "control_characters"),
        "long": ("captions", "caption_too_long_chars"),
    }
    assert dataset.manifest.stages["captions"].candidates == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"caption": "a \ud800 cat"}, "expected valid Unicode text"),
        ({}, "the id 'one' appears twice"),
    ],
)
def test_pairs_that_cannot_be_told_or_written_are_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], message: str
) -> None:
    pair = {"id": "one", "image": "a.jpg", "caption": "a cat", "hard_negative": "a dog"}
    pairs = write_lines(tmp_path / "pairs.jsonl", [pair, pair | change])

    with pytest.raises(SystemExit) as left:
        hard_positives.main(["--pairs", str(pairs), "--output", str(tmp_path / "out")])

    assert left.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


BALANCED = [
    {
        "image": f"{n // 2}.jpg",
        "caption": f"A {('red', 'blue', 'white')[n % 3]} {('bus', 'car', 'boat')[n % 7 % 3]} is "
        f"parked {('near', 'behind')[n % 2]} a {('small', 'big')[n % 5 % 2]} house",
        "id": f"c{n:02}",
    }
    for n in range(40)
]


@pytest.fixture(scope="module")
def balanced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("balanced")
    captions = write_lines(folder / "captions.jsonl", BALANCED)
    build(folder / "out", "--captions", captions, "--balance", "text")
    return folder / "out"


def test_balanced_texts_are_certified_and_what_is_dropped_is_in_the_books(balanced: Path) -> None:
    dataset = open_dataset(str(balanced))
    rows, manifest = list(dataset.rows("samples")), dataset.manifest
    books = manifest.stages["hard_positives"]
    assert (books.candidates, books.kept) == (40, len(rows))
    assert set(books.reasons) <= {"unbalanced", "duplicate", "negative_true_elsewhere"}
    assert {row["hard_positive_kind"].endswith("/reversed") for row in rows} == {True, False}
    assert isinstance(manifest.certificate, Certificate)
    assert manifest.certificate.rows == len(rows)
    questions = {probe.question for probe in manifest.certificate.probes}
    assert questions == {
        "Which is true, the positive or the negative?",
        "Which is true, the hard positive or the negative?",
    }
    probes = {probe.probe for probe in manifest.certificate.probes}
    assert probes >= {"length", "words", "letters", "likelihood"}
    best = manifest.certificate.best
    assert best is not None
    told = [max(probe.accuracy, 1 - probe.accuracy) for probe in manifest.certificate.probes]
    assert best.accuracy == pytest.approx(max(told))
    assert any(
        best.high - best.low > probe.high - probe.low for probe in manifest.certificate.probes
    )
    card = (balanced / "README.md").read_text()
    assert "## What the text alone predicts" in card
    assert f"on {len(rows)} rows" in card
    assert f"The best of all {len(manifest.certificate.probes)} is {best.probe}" in card


def test_balanced_rows_are_the_same_alone_and_from_several_processes(
    balanced: Path, tmp_path: Path
) -> None:
    captions = write_lines(tmp_path / "captions.jsonl", BALANCED)
    command = ("--captions", captions, "--balance", "text")
    build(tmp_path / "two", *command, "--workers", 2)
    whole = parts(balanced)
    build(tmp_path / "one", *command, "--only", min(whole))

    assert (tmp_path / "two/dataset.json").read_bytes() == (balanced / "dataset.json").read_bytes()
    alone = parts(tmp_path / "one")
    assert alone == {name: whole[name] for name in alone}


def test_what_was_not_balanced_has_no_certificate(tmp_path: Path) -> None:
    captions = write_lines(tmp_path / "captions.jsonl", TOGETHER)
    build(tmp_path / "out", "--captions", captions)
    assert b"certificate" not in (tmp_path / "out" / "dataset.json").read_bytes()


def test_captions_without_a_picture_are_judged_each_on_its_own(tmp_path: Path) -> None:
    lines = [{"caption": each["caption"], "id": each["id"]} for each in BALANCED]
    captions = write_lines(tmp_path / "captions.jsonl", lines)
    build(tmp_path / "out", "--captions", captions, "--balance", "text")
    certificate = open_dataset(str(tmp_path / "out")).manifest.certificate
    assert isinstance(certificate, Certificate)
    assert certificate.probes


def test_too_few_images_to_judge_are_said_in_the_certificate(tmp_path: Path) -> None:
    captions = write_lines(tmp_path / "captions.jsonl", TOGETHER)
    build(tmp_path / "out", "--captions", captions, "--balance", "text")
    certificate = open_dataset(str(tmp_path / "out")).manifest.certificate
    assert isinstance(certificate, Certificate)
    assert (certificate.probes, certificate.best) == ([], None)
    assert "the audit needs rows of at least 5 images" in certificate.unasked[0]
    assert "Not measured: all" in (tmp_path / "out" / "README.md").read_text()
