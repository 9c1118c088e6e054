"""Nothing that reviewers are given says which texts are true, and their answers find it out."""

import base64
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eqforge.evaluation.report.items import Item, Pane, plain
from eqforge.evaluation.review.assign import hidden_id
from eqforge.evaluation.review.forms import TRUTHS
from eqforge.evaluation.review.protocols import protocols
from eqforge.evaluation.review.units import claims_of, units_of
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import rows as rows_in
from tests.evaluation.report.pages import Page
from tests.evaluation.review.reviews import planned, saved, taken
from tests.evaluation.review.test_label_studio import chosen, exported, known
from tests.made_datasets import built, write_captions, write_squares
from tests.reports import given

TELLING = re.compile(r"hard[ _](positive|negative)|original|\btrue target|other_caption", re.I)
OWN = {
    "own.toml": 'name = "own"\nquestion = "Is it English?"\n',
    "judge.toml": 'name = "own judge"\nquestion = "Is it so?"\nform = "judge"\n',
}
DATASETS: dict[str, Callable[[Path], Path]] = {
    "pairs": write_squares,
    "training-captions": write_captions,
    "texts alone": lambda folder: write_captions(folder, images=False),
    **{
        name: lambda folder, name=name: built(name)  # type: ignore[misc]
        for name in ("hard-positives", "retrieval-perturbations", "simat", "vlue")
    },
}


def protocol_names(folder: Path) -> list[str]:
    for name, text in OWN.items():
        (folder / name).write_text(text)
    shipped = [n for n, each in protocols().items() if each.form in ("decide", "judge", "rank")]
    return [*shipped, *(str(folder / name) for name in OWN)]


def tried(dataset: Path, output: Path, protocol: str, *more: object) -> bool:
    try:
        planned(dataset, output, protocol, "ada ben", "--overlap", 2, "--sample", 12, *more)
    except SystemExit:
        return False
    return True


@pytest.mark.parametrize("kind", DATASETS)
def test_no_page_of_any_protocol_says_which_texts_are_true(kind: str, tmp_path: Path) -> None:
    """Neither pages, their data, projects of Label Studio, nor names of files."""
    dataset = DATASETS[kind](tmp_path / "d")
    found = 0
    for protocol, tool in itertools.product(protocol_names(tmp_path), ("pages", "label-studio")):
        output = tmp_path / f"{found}-{tool}"
        if not tried(dataset, output, protocol, "--tool", tool):
            continue
        found += 1
        for path in output.rglob("*"):
            assert not TELLING.search(str(path.relative_to(output)))
            if path.suffix not in (".js", ".html", ".json", ".xml") or "assets" in path.parts:
                continue
            text = path.read_text("utf-8")
            known = re.findall(r'"known": "([^"]+)"', text)
            text += "".join(base64.urlsafe_b64decode(each).decode() for each in known)
            assert TELLING.search(text) is None, path
            assert '"ranked"' not in text
            assert not re.search(r'"tone":"(true|false)"|class=."text (true|false)', text)
            roles = set(re.findall(r'"role":"([^"]*)"|class=."role.">([^<]*)', text))
            assert {a or b for a, b in roles} <= {"", "question", "answer"}
        for file in output.glob("data/ada/items/*.js"):
            for item in given(output, f"ada/items/{file.stem}"):
                assert item["panes"] or item["texts"]
                texts = [text for pane in item["panes"] for text in pane["texts"]]
                if not item["comparable"]:
                    assert all(isinstance(p, str) for t in item["texts"] for p in t["parts"])
                    assert texts == [] or kind in ("pairs", "simat")
                is_judged = "choices" in item  # what has no picture is dropped by hand
                assert is_judged or not item["panes"] or any(p["file"] for p in item["panes"])
    assert found > 1


def judged_by(dataset: Path, wrong: str = "") -> Callable[[str, list[str]], list[list[int]]]:
    """What somebody answers who is right, but for texts of one kind, of an item by its id."""
    units = units_of(open_dataset(str(dataset)), "samples")
    items = {hidden_id(name): item for name, item in units.make(units.ids).items()}
    items |= {item: items[hidden_id(item)] for item in units.ids}

    def answer(item: str, texts: list[str]) -> list[list[int]]:
        by_text = {claim.text: claim for claim in claims_of(items[item])}
        assert sorted(by_text) == sorted(texts)
        return [
            [
                1 + ((by_text[text].tones[place] == "false") != (by_text[text].kind == wrong))
                for text in texts
            ]
            for place in range(len(by_text[texts[0]].tones))
        ]

    return answer


def test_a_row_is_right_if_the_answers_agree_with_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In either tool; ben calls each negative true."""
    dataset = write_captions(tmp_path / "d")
    more = ("true-and-false", "ada ben", "--overlap", 2, "--tool")
    pages = planned(dataset, tmp_path / "pages", *more, "pages")
    (home,) = planned(dataset, tmp_path / "ls", *more, "label-studio").glob("data/review-*")
    negative = "hard negative (replace_relation)"
    right, wrong = judged_by(dataset), judged_by(dataset, negative)

    def in_project(data: dict[str, Any]) -> list[dict[str, Any]]:
        texts = [data[f"rank_0_{n}"] for n in (0, 1) if data[f"rank_0_{n}"]]
        ((*given,),) = right(known({"data": data})["id"], texts)
        return [chosen(f"rank_0_{n}", TRUTHS[each - 1]) for n, each in enumerate(given)]

    def on_page(item: str, shown: dict[str, Any]) -> dict[str, Any]:
        return {"ranks": wrong(item, [text["parts"][0] for text in shown["texts"]])}

    ada, ben = exported(home, "ada", in_project), saved(pages, "ben", on_page, format_version=2)
    first = {item["texts"][0]["parts"][0][:6] for item in given(pages, "ada/items/0")}
    assert len(first) > 1
    ids = {row["sample_id"] for row in rows_in(dataset, "samples")}
    alone = taken(dataset, [ada], tmp_path / "alone.jsonl")
    assert {row["id"]: row["decision"] for row in alone} == dict.fromkeys(ids, "keep")
    capsys.readouterr()
    answers = tmp_path / "answers.jsonl"
    rows = taken(dataset, [ada, ben], tmp_path / "o.jsonl", "--answers", answers)
    dropped = {row["id"] for row in rows if row["votes"]["drop"]}
    assert dropped == {name for name in ids if name.endswith("hard_negative")}
    said = capsys.readouterr().out
    assert f"{negative}, labelled false: 50%" in said
    assert "original, labelled true: 100%" in said
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert {line["item"] for line in lines} == ids
    assert all(set(line["texts"].values()) <= {"true", "false"} for line in lines)


def test_both_texts_of_a_pair_are_judged_for_each_picture(tmp_path: Path) -> None:
    dataset = write_squares(tmp_path / "d")
    plan = planned(dataset, tmp_path / "p", "true-and-false", "ada", "--overlap", 1)
    right = judged_by(dataset)

    def answer(item: str, shown: dict[str, Any]) -> dict[str, Any]:
        given = right(item, [text["parts"][0] for text in shown["texts"]])
        return {"ranks": [given[place] for place in shown["places"]]}

    rows = taken(dataset, [saved(plan, "ada", answer, format_version=2)], tmp_path / "o")
    assert {row["decision"] for row in rows} == {"keep"}
    assert {tuple(one["places"]) for one in given(plan, "ada/items/0")} == {(0, 1), (1, 0)}


def test_a_question_is_put_with_each_of_its_answers() -> None:
    """A text that is always true would give the answer away."""
    texts = (plain("Is it red?", "question"), plain("Yes", "answer", "true"))
    said = claims_of(Item(id="q", panes=(Pane(name="p", image_id="i"),), texts=texts))
    assert [(each.text, each.tones) for each in said] == [
        ("Is it red? Yes", ("true",)),
        ("Is it red? No", ("false",)),
    ]


def test_texts_are_judged_by_keys(opened: Callable[..., Page], tmp_path: Path) -> None:
    dataset = write_captions(tmp_path / "d")
    plan = planned(dataset, tmp_path / "p", "true-and-false", "ada", "--sample", 3)
    page = opened(plan).open("ada.html").page
    for task in range(3):
        page.wait_for_selector("#single[aria-busy=false]")
        texts = page.locator(".rank").count()
        assert page.locator(".role").all_inner_texts() == ["image"]
        assert page.locator(".text.true, .text.false").count() == 0
        page.keyboard.press("Enter")
        assert page.inner_text("#missing") == "Judge each text."
        for _ in range(texts):
            page.keyboard.press("t" if task else "u")
        page.keyboard.press("Enter")
    with page.expect_download() as download:
        page.click("#save")
    path = tmp_path / "ada.json"
    download.value.save_as(path)
    rows = taken(dataset, [path], tmp_path / "o")
    assert [row["decision"] for row in rows].count("unsure") == 1
