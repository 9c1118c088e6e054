"""Captions that a language model finds odd are not drawn."""

import json
from pathlib import Path
from statistics import median

import pytest

from eqforge.pipelines import eq_edit, eq_sd
from tests.builds import books, finished_work, ids, rows
from tests.optional import optional
from tests.tiny_judges import save_llm

optional("torch")
optional("diffusers")

TINY = ["--model", "tiny", "--steps", "2", "--cpu-threads", "1"]
OPEN = ["--min-changed-area", "None", "--max-changed-area", "None", "--min-background-ssim", "None"]
DRAW = ["--pairs", "4", *TINY, "--guidance-scale", "50", *OPEN]
IMPLAUSIBILITY = ("implausibility_0", "implausibility_1")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return ["--plausibility", str(save_llm(tmp_path_factory.mktemp("models") / "llm"))]


def weighed(output: Path) -> dict[str, tuple[float, ...]]:
    """How implausible the captions of each sample are."""
    found = {}
    for row in rows(output, "samples"):
        scores = {score["name"]: score["value"] for score in row["scores"]}
        found[row["sample_id"]] = tuple(scores[name] for name in IMPLAUSIBILITY)
    return found


def test_scores_are_stored_and_refuse_nothing_without_a_limit(
    model: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    assert eq_sd.main([*DRAW, *model, "--output", str(output)]) == 0
    assert books(output)["prompts"] == (4, 4, 0)
    before = weighed(output)
    assert len(before) == 4

    limit = median(max(values) for values in before.values())
    drawn = finished_work(output, "draw")
    more = ["--max-implausibility", str(limit), "--seeds", "2", "--overwrite"]
    assert eq_sd.main([*DRAW, *model, *more, "--output", str(output)]) == 0
    odd = {name for name, values in before.items() if max(values) > limit}
    refused = {
        row["candidate_id"]: row
        for row in rows(output, "rejects")
        if row["reason"] == "implausible"
    }
    assert odd <= set(refused)
    for name in odd:
        assert refused[name]["stage"] == "prompts"
        assert (refused[name]["value"], refused[name]["threshold"]) == (max(before[name]), limit)
    assert len(ids(output)) == 4  # others are drawn in their place
    assert all(max(values) <= limit for values in weighed(output).values())
    found = books(output)
    assert found["drawings"][0] == 2 * found["prompts"][1]
    assert set(drawn) <= set(finished_work(output, "draw"))


def test_of_a_photograph_only_the_negative_has_to_be_plausible(
    model: list[str], tmp_path: Path
) -> None:
    from PIL import Image
    from skimage import data

    Image.fromarray(data.coffee()).resize((72, 48)).save(tmp_path / "coffee.png")
    line = {"image": "coffee.png", "caption": "A cup.", "hard_negative": "A box of tea on a bed."}
    captions = tmp_path / "captions.jsonl"
    captions.write_text(json.dumps({**line, "id": "coffee"}) + "\n")
    asked = [
        *("--images", str(tmp_path), "--captions", str(captions)),
        *(*TINY, "--editor", "instruct-pix2pix", *OPEN, *model),
    ]

    output = tmp_path / "out"
    assert eq_edit.main([*asked, "--output", str(output)]) == 0
    ((caption, negative),) = weighed(output).values()
    assert caption != negative
    for number, (side, limit) in enumerate(((caption, negative), (negative, negative - 0.01))):
        again = tmp_path / f"again-{number}"
        more = ["--max-implausibility", str(limit), "--output", str(again)]
        assert eq_edit.main([*asked, *more]) == 0
        assert len(ids(again)) == (1 if limit >= negative else 0), side
    assert rows(again, "rejects")[0]["detail"] == "A box of tea on a bed."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-implausibility", "3"], "also pass a model"),
        (["--plausibility", "nowhere"], "nowhere"),
        (["--plausibility", "folder,size=2"], "unknown option 'size'"),
        (["--plausibility", "folder", "--max-implausibility", "-1"], "expected 0 to 1000"),
    ],
)
def test_a_wrong_setting_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        eq_sd.main([*DRAW, *arguments, "--output", str(tmp_path / "out")])
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out" / "data").exists()
