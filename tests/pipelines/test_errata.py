"""Errata: found by the lint, applied by a build, told by the card, left out by the metrics."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge import cli
from eqforge.core.errors import InputError
from eqforge.generators.text.lints.command import of_samples
from eqforge.generators.text.lints.lint import Finding
from tests.builds import books, dataset_bytes, ids, patch_manifest, rejected, rows
from tests.statuses import status_of

main = status_of(cli.main)
PAIRS = [
    ("1.jpg", "red dog sits", "blue dog sits"),
    ("1.jpg", "red dog sits", "blue dog sits"),
    ("2.jpg", "a red horse", "a red horse"),
    ("3.jpg", "a black cat", "a white cat"),
    ("4.jpg", "two green birds", "two yellow birds"),
]


def perturbed(folder: Path, *more: object, output: str = "out") -> Path:
    images = folder / "images"
    images.mkdir(exist_ok=True)
    lines = []
    for number in range(4):
        pixels = np.full((40, 50, 3), 60 * number, np.uint8)
        Image.fromarray(pixels).save(images / f"{number}.png")
        lines.append({"image": f"{number}.png", "caption": f"Two dogs and {number} red cups."})
    captions = folder / "captions.jsonl"
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    argv = ["--captions", captions, "--images", images, "--output", folder / output, *more]
    status = main(["build", "retrieval-perturbations", *map(str, argv)])
    return folder / output if status == 0 else Path(f"status {status}")


def foils(folder: Path, errata: Path | None = None, output: str = "out") -> Path:
    path = folder / "foils.json"
    data = folder / "Attribute" / "vg"
    data.mkdir(parents=True, exist_ok=True)
    entries = [[image, {"POS": [true], "NEG": [false]}] for image, true, false in PAIRS]
    for group in ("action", "color", "material", "size", "state"):
        (data / f"{group}.json").write_text(json.dumps(entries if group == "color" else []))
    path.write_text(json.dumps(entries))
    argv: list[object] = ["--vl-checklist", folder, "--kinds", "attribute", "--mode", "paper"]
    argv += ["--output", folder / output]
    argv += [] if errata is None else ["--errata", errata]
    assert main(["build", "hard-positives", *map(str, argv)]) == 0
    return folder / output


def write(path: Path, *errata: dict[str, Any], seed: int = 0) -> Path:
    lines = [json.dumps({"reason": "wrong", "who": "Ada"} | one) for one in errata]
    random.Random(seed).shuffle(lines)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_dropped_samples_are_rejects_and_corrected_ones_are_measured_again(tmp_path: Path) -> None:
    whole = perturbed(tmp_path)
    samples = {row["sample_id"]: row for row in rows(whole, "samples")}
    images = {row["image_id"]: row for row in rows(whole, "images")}
    changed = next(key for key, row in samples.items() if row["applied"])
    gone = [key for key in samples if key != changed][:5]
    errata = [
        *({"id": key, "action": "drop", "when": "2026-11-23"} for key in gone),
        {"id": changed, "action": "correct", "column": "perturbed_caption", "text": "Two bats 猫."},
        {"id": changed, "action": "note", "reason": "see |there|"},
    ]
    path = write(tmp_path / "errata.jsonl", *errata)
    mended = perturbed(tmp_path, "--errata", path, output="mended")

    found = {row["sample_id"]: row for row in rows(mended, "samples")}
    assert found.keys() == samples.keys() - set(gone)
    for key, row in found.items():
        if key != changed:
            assert row == samples[key]
    row = found[changed]
    assert row["perturbed_caption"] == "Two bats 猫."
    texts = [row["perturbed_caption"][s["start"] : s["end"]] for s in row["perturbed_spans"]]
    assert texts == ["bats 猫"]
    assert sorted(rejected(mended, "erratum")) == sorted(gone)
    assert books(mended)["errata"] == (len(samples), len(found), 5)
    details = {r["detail"] for r in rows(mended, "rejects") if r["stage"] == "errata"}
    assert details == {"wrong (Ada, 2026-11-23)"}
    assert {r["image_id"]: r for r in rows(mended, "images")} == images
    manifest = json.loads((mended / "dataset.json").read_text())
    assert [file["name"] for file in manifest["inputs"]] == ["captions.jsonl", "errata.jsonl"]
    assert len(manifest["errata"]) == 7
    card = (mended / "README.md").read_text()
    assert "| drop | wrong | Ada | 5 |" in card
    assert r"see \|there\|" in card
    assert "--errata path/to/errata.jsonl" in card
    assert main(["verify", str(mended)]) in (0, 3)


def test_pictures_that_only_dropped_samples_name_go_too(tmp_path: Path) -> None:
    whole = foils_with_images(tmp_path)
    first = rows(whole, "samples")[0]
    gone = [r["sample_id"] for r in rows(whole, "samples") if r["image_id"] == first["image_id"]]
    path = write(tmp_path / "errata.jsonl", *({"id": key, "action": "drop"} for key in gone))
    mended = foils_with_images(tmp_path, path)

    left = {row["image_id"] for row in rows(mended, "images")}
    assert {row["image_id"] for row in rows(whole, "images")} - left == {first["image_id"]}
    assert left == {row["image_id"] for row in rows(mended, "samples")}
    assert main(["verify", str(mended)]) in (0, 3)


def foils_with_images(folder: Path, errata: Path | None = None) -> Path:
    images = folder / "pictures"
    images.mkdir(exist_ok=True)
    lines = []
    for number, size in enumerate(("big", "small", "long")):
        Image.new("RGB", (20, 20), (80 * number, 9, 9)).save(images / f"{number}.png")
        caption = f"A {size} dog and a red ball on a sofa."
        lines.append(json.dumps({"image": f"{number}.png", "caption": caption}))
    path = folder / "shown.jsonl"
    path.write_text("\n".join(lines))
    output = folder / ("shown" if errata is None else "shown-mended")
    argv: list[object] = ["--captions", path, "--images", images]
    argv += ["--output", output, *(() if errata is None else ("--errata", errata))]
    assert main(["build", "hard-positives", *map(str, argv)]) == 0
    return output


def test_the_order_of_errata_changes_nothing(tmp_path: Path) -> None:
    samples = ids(perturbed(tmp_path))
    errata = [{"id": key, "action": "drop"} for key in samples[::3]]
    builds = []
    for seed in (1, 2):
        path = write(tmp_path / "errata.jsonl", *errata, seed=seed)
        files = dataset_bytes(perturbed(tmp_path, "--errata", path, output=f"out-{seed}"))
        builds.append({name: data for name, data in files.items() if name.startswith("data/")})
    assert builds[0] == builds[1]


def test_an_erratum_of_no_sample_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "errata.jsonl", {"id": "no/such\x1b", "action": "note"})
    assert not perturbed(tmp_path, "--errata", path).exists()
    said = capfd.readouterr().err
    assert "1 id matches no sample: 'no/such" in said
    assert "\x1b" not in said
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_a_part_of_a_dataset_is_built_with_the_errata_of_the_whole(tmp_path: Path) -> None:
    samples = ids(perturbed(tmp_path))
    path = write(tmp_path / "e.jsonl", *({"id": key, "action": "drop"} for key in samples[::2]))
    part = perturbed(tmp_path, "--errata", path, "--limit", 1, output="part")
    manifest = json.loads((part / "dataset.json").read_text())
    assert 0 < len(manifest["errata"]) < len(samples[::2])
    assert "samples in the errata are not in this part" in manifest["warnings"][-1]
    assert main(["verify", str(part)]) in (0, 3)


@pytest.mark.parametrize("column", ["sample_id", "image_id", "split", "words_changed", "nothing"])
def test_what_is_no_text_cannot_be_corrected(
    tmp_path: Path, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    correction = {"id": "x", "action": "correct", "column": column, "text": "y"}
    path = write(tmp_path / "errata.jsonl", correction)
    assert str(perturbed(tmp_path, "--errata", path)) == "status 2"
    said = capsys.readouterr().err
    assert "cannot be corrected; you can correct 'caption' and 'perturbed_caption'" in said
    assert not (tmp_path / "out").exists()


def test_the_lint_writes_errata_that_a_build_applies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wordfreq")
    whole = foils(tmp_path)
    path = tmp_path / "errata.jsonl"
    kinds = ["--errata-kinds", "duplicate", "negative_equals_positive"]
    for _ in range(2):  # the same bytes each time
        assert main(["lint", str(whole), "--errata", str(path), *kinds]) in (0, 1)
        written = path.read_bytes()
    assert path.read_bytes() == written
    found = [json.loads(line) for line in written.splitlines()]
    assert sorted(one["reason"].split(":")[0] for one in found) == ["duplicate"]
    mended = foils(tmp_path, path, "mended")
    assert {one["id"] for one in found} == set(ids(whole)) - set(ids(mended))
    assert all(one["action"] == "drop" and "eqforge lint" in one["who"] for one in found)
    assert main(["lint", str(tmp_path / "foils.json"), "--errata", str(path)]) == 1
    assert main(["lint", str(whole), "--errata-kinds", "duplicat"]) == 2
    assert "did you mean 'duplicate'?" in capsys.readouterr().err


def pairs(folder: Path, errata: Path | None = None, output: str = "pairs") -> Path:
    """Pairs of images, imported; of the second the captions are the same."""
    path = folder / "pairs.jsonl"
    texts = [("a cat on a mat", "a mat on a cat"), ("a red cup", "a red cup"), ("up", "down")]
    path.write_text(
        "".join(
            json.dumps(
                {"sample_id": f"p/{n}", "image_0": f"{n}a.png", "image_1": f"{n}b.png"}
                | {"caption_0": first, "caption_1": second}
            )
            + "\n"
            for n, (first, second) in enumerate(texts)
        )
    )
    more = [] if errata is None else ["--errata", str(errata)]
    assert main(["import", "own-pairs", str(path), "--output", str(folder / output), *more]) == 0
    return folder / output


def test_the_lint_of_pairs_writes_errata_that_an_import_applies(tmp_path: Path) -> None:
    pytest.importorskip("wordfreq")
    whole, path = pairs(tmp_path), tmp_path / "errata.jsonl"
    kinds = ["--errata-kinds", "negative_equals_positive"]
    assert main(["lint", str(whole), "--errata", str(path), *kinds]) == 1
    (found,) = [json.loads(line) for line in path.read_text().splitlines()]
    mended = pairs(tmp_path, path, "mended")
    written = (mended / "README.md").read_text()
    assert "from 6 named pictures" in (whole / "README.md").read_text()
    assert main(["card", str(mended)]) == 0
    assert (mended / "README.md").read_text() == written
    assert set(ids(whole)) - set(ids(mended)) == {found["id"]}
    assert len(ids(mended)) == 2


def test_findings_of_a_training_caption_are_of_all_of_its_texts(tmp_path: Path) -> None:
    rows_ = [
        {"sample_id": f"{c}/{role}", "caption_id": c, "image": "", "role": role, "text": "a"}
        for c in ("c1", "c2")
        for role in ("original", "hard_positive")
    ]
    (tmp_path / "data").mkdir()
    pq.write_table(
        pa.Table.from_pylist(rows_), tmp_path / "data" / "samples-00000-of-00001.parquet"
    )
    finding = Finding(kind="unchanged", record_id="c2", field="hard_positive", detail="a")
    found = [each.record_id for each in of_samples([finding], tmp_path)]
    assert found == ["c2/original", "c2/hard_positive"]
    with pytest.raises(InputError, match="an erratum for 'c3', because it is not a sample"):
        list(of_samples([replace(finding, record_id="c3")], tmp_path))


def test_metrics_leave_out_what_is_dropped_and_what_was_scored_before_it_was_corrected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = tmp_path / "scores.json"
    values = {f"s{n}": [1.0, 0.0] if n else [0.0, 1.0] for n in range(10)}
    scores.write_text(json.dumps(values))
    path = write(
        tmp_path / "errata.jsonl",
        {"id": "s0", "action": "drop"},
        {"id": "s1", "action": "correct", "column": "caption", "text": "y"},
        {"id": "s2", "action": "note"},
    )
    command = ["metrics", "--format", "foils", str(scores), "--json", "--resamples", "10"]
    assert main(command) == 0
    before = json.loads(capsys.readouterr().out)
    assert main([*command, "--errata", str(path)]) == 0
    after = json.loads(capsys.readouterr().out)
    (was,) = [one for one in before["measures"] if one["metric"] == "pairwise"]
    (now,) = [one for one in after["measures"] if one["metric"] == "pairwise"]
    assert (was["value"], now["value"]) == (0.9, 1.0)
    assert any("1 sample left out (drop): wrong" in note for note in after["notes"])

    write(path, {"id": "s99", "action": "drop"})
    assert main([*command, "--errata", str(path)]) == 2
    assert "'s99'" in capsys.readouterr().err


def test_a_dataset_without_errata_says_nothing_of_them(tmp_path: Path) -> None:
    output = perturbed(tmp_path)
    assert "errata" not in books(output)
    assert "## Errata" not in (output / "README.md").read_text()
    patch_manifest(output, lambda manifest: manifest.pop("errata"))  # as of an earlier version
    assert main(["inspect", str(output)]) == 0
