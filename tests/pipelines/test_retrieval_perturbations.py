import json
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import inspection, verify
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.perturbations.catalogue import PERTURBATIONS, perturb_all
from eqforge.pipelines import retrieval_perturbations
from eqforge.pipelines.base import text
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.transforms.text import perturb

CAPTIONS = (
    "A small brown dog runs across the green grass.",
    "Two men and a woman are sitting on a red sofa.",
    "x",
)


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A user's file of three captions and one that is empty."""
    lines = [
        {"image": f"{number}.jpg", "caption": text, "id": f"c{number}"}
        for number, text in enumerate((*CAPTIONS, "   "))
    ]
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def build(output: Path, *arguments: object) -> list[dict[str, Any]]:
    command = [*map(str, arguments), "--output", str(output)]
    assert retrieval_perturbations.main(command) == 0
    assert verify.main([str(output)]) == 0
    return list(open_dataset(str(output)).rows("samples"))


def test_every_caption_has_every_perturbation_once(captions: Path, tmp_path: Path) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    assert Counter(row["caption_id"] for row in rows) == dict.fromkeys(
        ("c0", "c1", "c2"), len(PERTURBATIONS)
    )
    assert {row["perturbation"] for row in rows} == set(PERTURBATIONS)
    dataset = open_dataset(str(tmp_path / "out"))
    assert [r["reason"] for r in dataset.rows("rejects")] == ["empty_caption"]
    assert {r["caption_id"]: r["words"] for r in dataset.rows("captions")} == {
        "c0": 9,
        "c1": 11,
        "c2": 1,
    }


def test_a_perturbed_caption_differs_or_says_why_not(captions: Path, tmp_path: Path) -> None:
    for row in build(tmp_path / "out", "--captions", captions):
        assert row["applied"] == (row["perturbed_caption"] != row["caption"])
        assert row["words_changed"] == row["applied"]
        assert (row["reason"] is None) == row["applied"]


def test_captions_that_could_not_be_changed_are_counted_apart(
    captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    unchanged = sum(not row["words_changed"] for row in rows)
    assert 0 < unchanged < len(rows)
    manifest = tmp_path / "out" / "dataset.json"
    found = json.loads(manifest.read_text())
    assert found["unchanged"] == unchanged
    said = (
        f"{len(rows) - unchanged} samples, {unchanged} rows whose words did not change, 3 captions"
    )
    assert said in capsys.readouterr().out
    assert f"`words_changed` is false: {unchanged}." in (tmp_path / "out" / "README.md").read_text()
    assert inspection.main([str(tmp_path / "out")]) == 0
    assert f"{len(rows)} ({unchanged} unchanged)" in capsys.readouterr().out
    manifest.write_text(json.dumps(found | {"unchanged": 1}))
    assert verify.main([str(tmp_path / "out")]) == 1
    assert (
        f"the words of {unchanged} samples did not change, but the manifest says 1\n"
        in capsys.readouterr().out
    )


def test_outside_the_stored_spans_nothing_changes(captions: Path, tmp_path: Path) -> None:
    for row in build(tmp_path / "out", "--captions", captions):
        outside = [_without(row["caption"], row["spans"])]
        outside.append(_without(row["perturbed_caption"], row["perturbed_spans"]))
        assert outside[0] == outside[1]


def _without(text: str, spans: list[dict[str, int]]) -> str:
    for span in reversed(spans):
        text = text[: span["start"]] + text[span["end"] :]
    return text


def test_one_sample_alone_is_the_same_as_in_the_whole_dataset(
    captions: Path, tmp_path: Path
) -> None:
    everything = {row["sample_id"]: row for row in build(tmp_path / "all", "--captions", captions)}

    for name in ("c0/synonym_noun", "c1/shuffle_all_words"):
        output = tmp_path / name.replace("/", "-")
        assert build(output, "--captions", captions, "--only", name) == [everything[name]]
        assert open_dataset(str(output)).manifest.stages["perturbations"].candidates == 1
    caption = [row for row in everything.values() if row["caption_id"] == "c1"]
    alone = build(tmp_path / "caption", "--captions", captions, "--only", "c1")
    assert alone == sorted(caption, key=itemgetter("sample_id"))


def test_a_caption_that_breaks_a_perturbation_is_as_many_rejects(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(analysis: Analysis, *arguments: Any) -> Any:
        if analysis.text == "x":
            raise ValueError("no such word")
        return perturb_all(analysis, *arguments)

    monkeypatch.setattr(perturb, "perturb_all", fail)
    rows = build(tmp_path / "out", "--captions", captions, "--max-error-rate", 0.5)

    assert {row["caption_id"] for row in rows} == {"c0", "c1"}
    dataset = open_dataset(str(tmp_path / "out"))
    errors = [r for r in dataset.rows("rejects") if r["reason"] == "error:ValueError"]
    assert sorted(r["candidate_id"] for r in errors) == sorted(f"c2/{n}" for n in PERTURBATIONS)
    assert {row["caption_id"] for row in dataset.rows("captions")} == {"c0", "c1"}
    assert dataset.manifest.stages["perturbations"].candidates == 3 * len(PERTURBATIONS)


def test_paper_mode_writes_the_published_typo(captions: Path, tmp_path: Path) -> None:
    rows = build(tmp_path / "out", "--captions", captions, "--mode", "paper")

    distracted = [r["perturbed_caption"] for r in rows if r["perturbation"] == "distraction_true"]
    assert all(text.endswith("and true it true.") for text in distracted)


def test_in_paper_mode_a_row_may_be_spaced_otherwise_and_is_no_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captions = tmp_path / "captions.jsonl"
    captions.write_text(json.dumps({"image": "0.jpg", "caption": "A dog runs.", "id": "c"}))
    rows = build(tmp_path / "out", "--captions", captions, "--mode", "paper")

    spaced = [row["sample_id"] for row in rows if row["applied"] and not row["words_changed"]]
    assert "c/synonym_adj" in spaced
    assert "c/synonym_noun" not in spaced
    unchanged = sum(not row["words_changed"] for row in rows)
    assert f"{unchanged} rows whose words did not change" in capsys.readouterr().out


def test_captions_of_an_unknown_format_are_rejected_before_wordnet_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a slow tool was loaded")

    monkeypatch.setattr(retrieval_perturbations, "check_wordnet", opened)
    monkeypatch.setattr(text, "reject_language", opened)
    path = tmp_path / "captions.json"
    path.write_text('{"101": 3}')

    command = ["--captions", str(path), "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match="2"):
        retrieval_perturbations.main(command)
    said = "captions.json: the field 'images' is missing; found only '101'"
    assert said in capsys.readouterr().err


def test_fine_grained_captions_are_perturbed(tmp_path: Path) -> None:
    path = tmp_path / "MSCOCO_FG_ann.json"
    path.write_text(json.dumps({"COCO_val2014_000000000042": list(CAPTIONS[:2])}))

    rows = build(tmp_path / "out", "--captions", path, "--mode", "paper")

    assert Counter((row["image"], row["caption"]) for row in rows) == {
        ("COCO_val2014_000000000042.jpg", caption): 13 for caption in CAPTIONS[:2]
    }


def test_inspect_shows_the_mean_granularity_of_the_captions(
    captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path / "out", "--captions", captions)
    capsys.readouterr()

    assert inspection.main([str(tmp_path / "out"), "--rows", "0"]) == 0

    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("words ")]
    assert line.split()[1:3] == ["3", "7.000"], "(9 + 11 + 1) / 3 words"
