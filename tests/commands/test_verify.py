"""`eqforge verify` finds every kind of damage, each done to a copy of one sound dataset."""

import hashlib
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge.commands import checks as module
from eqforge.commands import inspection, verify
from eqforge.commands.checks import CHECKS
from eqforge.core.errors import MissingExtra
from eqforge.generators.demo.workspace import Workspace
from eqforge.generators.text import language, parts
from eqforge.generators.text.lints import command as lint
from eqforge.generators.text.lints.lint import lint_records
from eqforge.pipelines import eq_video, hard_positives, retrieval_perturbations, training_captions
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.sources.text_pairs import read_text_pairs
from tests.builds import PUBLISHED_LEXICON, patch_manifest, rewrite
from tests.handmade import write
from tests.made_datasets import describe

SAMPLES = "data/samples-00000-of-00001.parquet"
IMAGES = "data/images-00000-of-00003.parquet"
REJECTS = "data/rejects-00000-of-00001.parquet"

Damage = Callable[[Path], object]
Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def sound(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verify") / "out"
    inputs = ["--captions", str(demo_workspace.captions), "--videos", str(demo_workspace.videos)]
    settings = ["--face-policy", "off", "--images-per-file", "4"]
    settings += ["--min-minimality", "0"]
    settings += ["--min-histogram-change", "0.35", "--max-registered-points", "7"]
    assert eq_video.main([*inputs, *settings, "--output", str(output)]) == 0
    shutil.rmtree(output / "_work")
    return output


@pytest.fixture
def dataset(sound: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(sound, tmp_path / "out"))


def problems(dataset: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    capsys.readouterr()
    assert verify.main([str(dataset)]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, list[str]] = {}
    for line in captured.out.splitlines()[:-1]:
        if not line.startswith("   "):
            is_failed = line.startswith("FAILED")
            name = line.split(maxsplit=1)[1]
            found |= {name: []} if is_failed else {}
        elif is_failed:
            found[name].append(line.strip())
    return found


def changed(index: int, **values: Any) -> Change:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | values if place == index else row for place, row in enumerate(rows)]

    return change


def test_a_sound_dataset_is_sound(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main([str(sound)]) == 0

    *checks, lints, reason, last = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in checks] == ["ok"] * (len(CHECKS) - 1)
    assert lints == "not linted  lints of error level"
    assert "each caption is true of its own image" in reason
    assert last == f"{sound}: sound"


def test_a_flipped_byte_is_found(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = sorted((SAMPLES, IMAGES, REJECTS))
    for place, path in zip((0.05, 0.5, 0.9), paths, strict=True):
        data = bytearray((dataset / path).read_bytes())
        data[int(place * len(data))] ^= 0xFF
        (dataset / path).write_bytes(data)

    found = problems(dataset, capsys)

    expected = [f"{path}: its bytes do not match the manifest" for path in paths]
    assert sorted(found["files and digests"]) == expected


def _cut_short(dataset: Path) -> None:
    (dataset / IMAGES).write_bytes((dataset / IMAGES).read_bytes()[:-1])


def _without_a_column(dataset: Path) -> None:
    table = pq.read_table(dataset / SAMPLES)
    pq.write_table(table.drop_columns(["ssim"]), dataset / SAMPLES)
    describe(dataset)


def _rewritten(path: str, change: Change) -> Damage:
    return lambda dataset: rewrite(dataset, path, change)


def _patched(patch: Callable[[dict[str, Any]], None]) -> Damage:
    return lambda dataset: patch_manifest(dataset, patch)


OTHER_ROWS = [f"{SAMPLES}: its rows have changed since the file was written"]
FOUND: dict[str, tuple[Damage, str, list[str]]] = {
    # what is done, the check that finds it, and all of its lines
    "missing": (
        lambda dataset: (dataset / IMAGES).unlink(),
        "files and digests",
        [f"{IMAGES}: the file is missing"],
    ),
    "cut short": (
        _cut_short,
        "files and digests",
        [f"{IMAGES}: its bytes do not match the manifest"],
    ),
    "stray file": (
        lambda d: shutil.copy(d / SAMPLES, d / "data" / "samples-00001-of-00002.parquet"),
        "files and digests",
        ["data/samples-00001-of-00002.parquet is not listed in the manifest"],
    ),
    "removed image": (
        _rewritten(IMAGES, lambda rows: rows[1:]),
        "rows",
        [f"{IMAGES}: its rows have changed since the file was written"],
    ),
    "other values": (_rewritten(SAMPLES, changed(2, ssim=0.25)), "rows", OTHER_ROWS),
    "a sample twice": (
        _rewritten(SAMPLES, lambda rows: [rows[0], *rows]),
        "counts",
        ["the last stage kept 10 candidates, but the samples table has 11 rows"],
    ),
    "counts": (
        _patched(lambda manifest: manifest["stages"]["pairs"].update(candidates=14)),
        "counts",
        ["pairs: 10 kept and 9 rejected candidates do not add up to 14"],
    ),
    "another reason": (
        _rewritten(REJECTS, changed(0, reason="same_image")),
        "counts",
        [
            "pairs, camera_cut: the rejects table has 8 rows, but the manifest counts 9",
            "pairs, same_image: the rejects table has 1 row, but the manifest counts 0",
        ],
    ),
    "an undocumented reason": (
        _rewritten(REJECTS, changed(0, reason="because")),
        "counts",
        [
            "pairs, because: the rejects table has 1 row, but the manifest counts 0",
            "pairs: because is not a documented reason",
            "pairs, camera_cut: the rejects table has 8 rows, but the manifest counts 9",
        ],
    ),
    "no table": (
        _patched(lambda manifest: manifest["tables"].update(others=[])),
        "schemas",
        ["others: eq-video datasets have no table with this name"],
    ),
    "other columns": (
        _without_a_column,
        "schemas",
        [f"{SAMPLES}: its columns do not match the table samples"],
    ),
}


@pytest.mark.parametrize(("damage", "check", "lines"), FOUND.values(), ids=FOUND)
def test_damage_is_found(
    dataset: Path, capsys: pytest.CaptureFixture[str], damage: Damage, check: str, lines: list[str]
) -> None:
    damage(dataset)
    found = problems(dataset, capsys)[check]
    assert found[-len(lines) :] == lines  # behind what does not fit within the rows


@pytest.mark.parametrize(
    ("change", "check", "part"),
    [
        (changed(0, caption_0=" "), "captions", "caption_0 is rejected: empty_caption"),
        (lambda rows: [rows[0], *rows], "ids", ": 2 rows have the id"),
    ],
)
def test_a_wrong_sample_is_named(
    dataset: Path, capsys: pytest.CaptureFixture[str], change: Change, check: str, part: str
) -> None:
    rewrite(dataset, SAMPLES, change)
    assert any(part in line for line in problems(dataset, capsys)[check])


@pytest.mark.parametrize("values", [{"image": {"bytes": b"no picture"}}, {"width_px": 7}])
def test_a_damaged_picture_is_found(
    dataset: Path, capsys: pytest.CaptureFixture[str], values: dict[str, Any]
) -> None:
    def damage(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        merged = {name: rows[0][name] | value if isinstance(value, dict) else value
                  for name, value in values.items()}  # fmt: skip
        return [rows[0] | merged, *rows[1:]]

    rewrite(dataset, IMAGES, damage)
    (line,) = problems(dataset, capsys)["images"]
    assert (
        line.endswith("its bytes do not match its digest or size") or "but its row says 7x" in line
    )


def test_an_image_that_nothing_uses_and_one_that_stands_twice_are_found(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = io.BytesIO()
    Image.new("RGB", (8, 6)).save(data, "PNG")
    new_id = hashlib.sha256(data.getvalue()).hexdigest()
    new = {
        "image_id": new_id,
        "image": {"bytes": data.getvalue(), "path": f"{new_id}.png"},
        "width_px": 8,
        "height_px": 6,
        "num_bytes": len(data.getvalue()),
    }
    rewrite(dataset, IMAGES, lambda rows: [rows[0], *rows, rows[0] | new])
    twice = pq.read_table(dataset / IMAGES)["image_id"][0].as_py()

    assert problems(dataset, capsys)["ids"] == [
        f"images: 2 rows have the id {twice}",
        f"image {new_id} is not used by any row",
    ]


def test_a_picture_that_does_not_decode_is_found_even_under_its_own_digest(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pq.read_table(dataset / IMAGES).to_pylist()[0]
    data = image["image"]["bytes"][:600]
    name = hashlib.sha256(data).hexdigest()
    rewrite(
        dataset, IMAGES,
        changed(0, image_id=name, num_bytes=600, image={"bytes": data, "path": f"{name}.jpg"}),
    )  # fmt: skip

    (line,) = problems(dataset, capsys)["images"]
    assert line.startswith(f"image {name}: it cannot be decoded")


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    """A dataset of generated pairs, to damage: both samples have the same mask."""
    write(tmp_path / "out")
    return tmp_path / "out"


def masks_file(dataset: Path) -> str:
    """The one file that holds the mask."""
    files = json.loads((dataset / "dataset.json").read_text())["tables"]["masks"]
    (path,) = [file["path"] for file in files if file["rows"]]
    return str(path)


def test_a_mask_with_other_bytes_is_found(
    generated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def damaged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"image": row["image"] | {"bytes": b"other"}} for row in rows]

    rewrite(generated, masks_file(generated), damaged)

    (line,) = problems(generated, capsys)["images"]
    assert line.startswith("mask ")
    assert line.endswith("its bytes do not match its digest or size")


def test_a_missing_mask_and_one_nobody_uses_are_found(
    generated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(
        generated, masks_file(generated), lambda rows: [row | {"mask_id": "0" * 64} for row in rows]
    )

    lines = problems(generated, capsys)["ids"]

    # Each of the two samples refers to it twice.
    assert sum(" refers to mask " in line for line in lines) == 4
    assert f"mask {'0' * 64} is not used by any row" in lines


def test_what_is_no_dataset_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (None, "", "[]", '{"format": "eqforge dataset"}'):
        if content is not None:
            (tmp_path / "dataset.json").write_text(content)
        with pytest.raises(SystemExit) as left:
            verify.main([str(tmp_path)])
        assert left.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_inspect_of_a_damaged_dataset_says_what_to_do(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (dataset / SAMPLES).write_bytes(b"no parquet")

    with pytest.raises(SystemExit) as left:
        inspection.main([str(dataset)])

    assert left.value.code == 2
    assert "run eqforge verify to check for other damage" in capsys.readouterr().err


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A sound dataset of captions."""
    source, output = tmp_path / "captions.jsonl", tmp_path / "captions"
    source.write_text('{"image": "1.jpg", "caption": "a man holds a red umbrella"}\n')
    assert hard_positives.main(["--captions", str(source), "--output", str(output)]) == 0
    assert verify.main([str(output)]) == 0
    return output


@pytest.fixture
def no_dictionary(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A core install has no textblob, whose dictionary the lints look words up in."""
    remembered = (
        language._newspaper_words,
        language.in_dictionary,
        language.is_known_word,
        language.is_sure_word,
        parts.english,
    )

    def forget() -> None:
        for lookup in remembered:
            lookup.cache_clear()

    monkeypatch.setitem(sys.modules, "textblob.en", None)
    forget()
    yield
    forget()


def test_a_check_that_lacks_a_package_is_not_checked(
    captions: Path, no_dictionary: None, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    assert verify.main([str(captions)]) == 3

    *lines, last = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line.startswith("FAILED")]
    at = lines.index("not checked lints of error level")
    assert lines[at + 1].strip() == "textblob is not installed; run pip install 'eqforge[text]'"
    checks = len(CHECKS)
    assert last == f"{captions}: no problem found, but 1 of {checks} checks were not run"


def test_damage_and_a_missing_package_is_damage(
    captions: Path, no_dictionary: None, capsys: pytest.CaptureFixture[str]
) -> None:
    (captions / "data" / "stray.parquet").write_bytes(b"x")

    assert verify.main([str(captions)]) == 1

    last = capsys.readouterr().out.splitlines()[-1]
    checks = len(CHECKS)
    assert last == f"{captions}: 1 problem, but 1 of {checks} checks were not run"


@pytest.fixture
def checklist(tmp_path: Path) -> Path:
    """A VL-CheckList folder with one caption in which "red" stands inside a word."""
    folder = tmp_path / "vl"
    for kind, names in (
        ("Attribute/vg", ("action", "color", "size", "state")),
        ("Relation/vg", ("spatial", "action")),
    ):
        (folder / kind).mkdir(parents=True)
        for name in names:
            records = [["1.jpg", {"POS": ["a covered red barn"], "NEG": ["a covered blue barn"]}]]
            (folder / kind / f"{name}.json").write_text(
                json.dumps(records if name == "color" else [])
            )
    return folder


@pytest.fixture
def paper(checklist: Path, tmp_path: Path) -> Path:
    """A dataset of paper mode with a published defect."""
    output = tmp_path / "out"
    inputs = ["--vl-checklist", str(checklist), "--mode", "paper", "--output", str(output)]
    assert hard_positives.main(inputs) == 0
    return output


def test_published_defects_are_noted_in_paper_mode(
    paper: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    assert verify.main([str(paper)]) == 0

    *lines, last = capsys.readouterr().out.splitlines()
    at = lines.index(f"{'noted':<11} lints of error level")
    assert "edit_inside_word: covered -> covecrimson (red -> crimson)" in lines[at + 1]
    assert last == f"{paper}: sound; 1 published defects were noted"


def test_what_stops_the_lints_is_damage_in_paper_mode_too(
    paper: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing package is no damage, but noted defects do not hide it."""

    def stopped_by(error: Exception) -> None:
        def broken(records: Any) -> Any:
            yield from lint_records(records)
            raise error

        monkeypatch.setattr("eqforge.commands.checks.lint_records", broken)

    stopped_by(ValueError("a row that no lint can read"))
    found = problems(paper, capsys)
    assert "ValueError: a row that no lint can read" in found["lints of error level"][-1]
    stopped_by(MissingExtra("wordfreq", "text"))
    assert verify.main([str(paper)]) == verify.NOT_CHECKED
    assert "not checked lints of error level" in capsys.readouterr().out


def test_lints_of_error_level_fail_a_corrected_dataset(
    checklist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    inputs = ["--vl-checklist", str(checklist), "--lexicon", str(PUBLISHED_LEXICON)]
    assert hard_positives.main([*inputs, "--output", str(output)]) == 0
    assert verify.main([str(output)]) == 0
    wrong = {"hard_positive": "a covered blue barn"}  # which is the negative
    rewrite(output, SAMPLES, changed(0, **wrong))

    found = problems(output, capsys)

    (line,) = found["lints of error level"]
    assert "hard_positive: hard_positive_equals_negative: a covered blue barn" in line


def test_training_captions_are_linted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captions, output = tmp_path / "captions.jsonl", tmp_path / "out"
    row = {"image": "1.jpg", "caption": "A red car and a dog.", "id": "c0"}
    captions.write_text(json.dumps(row) + "\n")
    inputs = ["--captions", str(captions), "--output", str(output)]
    assert training_captions.main(inputs) == 0
    assert verify.main([str(output)]) == 0

    def repeat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        (original,) = [row["text"] for row in rows if row["role"] == "original"]
        return [row | {"text": original} for row in rows]

    rewrite(output, SAMPLES, repeat)
    found = problems(output, capsys)["lints of error level"]
    assert any("hard_positive: unchanged" in line for line in found)


def test_texts_of_two_parts_of_an_image_do_not_contradict_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    white, black = "the white snow and the black road", "the black snow and the white road"
    records = [
        {"image_path": "1.jpg", "true_caption": true, "false_caption": false}
        | {"bbox_x": x, "bbox_y": 0, "bbox_w": 40, "bbox_h": 40}
        for x, true, false in ((0, white, black), (50, black, white))
    ]
    pairs, output = tmp_path / "pairs.json", tmp_path / "out"
    pairs.write_text(json.dumps(records))
    assert hard_positives.main(["--pairs", str(pairs), "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith(f"{output}: 2 samples")

    assert verify.main([str(output)]) == 0
    assert lint.main([str(pairs), str(output), "--fail-on", "error"]) == 0
    assert [pair.box for pair in read_text_pairs(output)] == [
        pair.box for pair in sorted(read_text_pairs(pairs), key=lambda pair: pair.pair_id)
    ]


@pytest.mark.parametrize("pipeline", [hard_positives, retrieval_perturbations])
def test_captions_that_clip_does_not_read_to_the_end_are_sound(
    pipeline: Any, tmp_path: Path
) -> None:
    caption = "a man holds a red umbrella and a woman rides a brown horse near a small lake " * 6
    source, output = tmp_path / "captions.jsonl", tmp_path / "out"
    end = "with a yellow roof and a blue door"
    source.write_text(json.dumps({"image": "1.jpg", "caption": caption + end}))
    assert pipeline.main(["--captions", str(source), "--output", str(output)]) == 0

    assert verify.main([str(output)]) == 0


def _without(table: str) -> Callable[[dict[str, Any], Path], None]:
    def take_away(manifest: dict[str, Any], folder: Path) -> None:
        for file in manifest["tables"].pop(table):
            (folder / file["path"]).unlink()

    return take_away


def _named_otherwise(manifest: dict[str, Any], _: Path) -> None:
    manifest["dataset"] = "eq-video"


def _with_a_stage(manifest: dict[str, Any], _: Path) -> None:
    books = {"candidates": 0, "kept": 0, "rejected": 0, "reasons": {}}
    manifest["stages"] = {"reviewed by hand": books} | manifest["stages"]


LIES = [
    ("eq-youcook2", _without("images"), "check_ids", "refers to image"),
    ("eq-kubric", _without("masks"), "check_ids", "refers to mask"),
    ("simat", _without("gallery"), "check_ids", "refers to row 0 of gallery"),
    ("retrieval-perturbations", _without("captions"), "check_ids", "refers to row c0 of captions"),
    ("vlue", _without("nlvr2"), "check_ids", "has no row in the table nlvr2"),
    ("eq-youcook2", _named_otherwise, "check_ids", "has the wrong dataset eq-youcook2"),
    ("eq-youcook2", _with_a_stage, "check_counts", "reviewed by hand is not a documented stage"),
]


@pytest.mark.parametrize(("name", "lie", "check", "said"), LIES, ids=range(len(LIES)))
def test_a_manifest_that_leaves_out_or_invents_is_told(
    tmp_path: Path, name: str, lie: Callable[[dict[str, Any], Path], None], check: str, said: str
) -> None:
    """Each was sound when it was tried: files, digests and sums are all right."""
    good = next(Path(__file__).parents[1].glob(f"old/*/{name}"))
    folder = Path(shutil.copytree(good, tmp_path / "d"))
    manifest = json.loads((folder / "dataset.json").read_text())
    assert list(getattr(module, check)(open_dataset(str(folder)))) == []

    lie(manifest, folder)
    (folder / "dataset.json").write_text(json.dumps(manifest))

    assert said in next(getattr(module, check)(open_dataset(str(folder))))
