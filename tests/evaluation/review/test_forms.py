"""Ranks, orders, texts and boxes that people give, and what follows from them."""

import csv
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr  # type: ignore[import-untyped]

from eqforge.cli import main as eqforge
from eqforge.commands import review
from eqforge.core.identity import sha256_hex
from eqforge.evaluation.review.agreement import counts_of
from eqforge.evaluation.review.forms import Vote
from eqforge.evaluation.review.protocols import broken, protocols
from eqforge.evaluation.review.ranking import _correlated
from eqforge.evaluation.review.units import PICTURES_A_QUERY, units_of
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import books
from tests.builds import rows as rows_in
from tests.evaluation.report.pages import THEMES, Page, violations
from tests.evaluation.review.reviews import Answer, always, planned, refused, saved, taken
from tests.made_datasets import (
    built,
    image_rows,
    picture,
    vectors,
    write_dataset,
    write_pairs,
    write_scores,
    write_squares,
)
from tests.reports import digests, given

METRICS = ("original", "augmented", "brittleness")
CAPTIONS = ("caption", "hard_positive", "hard_negative")


# --- captions that are ranked: the row of people beside the models


@pytest.fixture(scope="module")
def hard_positives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """130 samples each of SWAP and REPLACE."""
    pictures = {sha256_hex(data): data for data in map(picture, range(4))}
    names = sorted(pictures)
    rows = [
        {
            "sample_id": f"{kind}/{n:03d}",
            "image": f"{n % 4}.jpg",
            "image_id": names[n % 4],
            "hard_negative_kind": kind,
            **{name: f"{name} {n}" for name in CAPTIONS},
        }
        for kind in ("replace", "swap")
        for n in range(130)
    ]
    folder = tmp_path_factory.mktemp("hp") / "d"
    return write_dataset(
        folder, "hard-positives", {"samples": rows, "images": image_rows(pictures)}
    )


def table(dataset: Path, output: Path, *more: object) -> dict[tuple[str, str, str], dict[str, str]]:
    argv = ["metrics", dataset, *more, "--output", output]
    assert eqforge(list(map(str, argv))) == 0
    with (output / "metrics.csv").open() as file:
        return {(r["model"], r["subset"], r["metric"]): r for r in csv.DictReader(file)}


def test_people_have_the_row_of_the_paper(hard_positives: Path, tmp_path: Path) -> None:
    """97 of 100 of SWAP, 100 of 100 of REPLACE, and nobody is brittle."""
    more = ("--sample", 100, "--each", "hard_negative_kind")
    plan = planned(hard_positives, tmp_path / "plan", "caption-ranking", "ada ben", *more)
    tasks = given(plan, "ada/tasks")["tasks"]
    items = sorted({item for item, _ in tasks})
    assert [sum(item.startswith(kind) for item in items) for kind in ("swap", "replace")] == [
        100
    ] * 2
    wrong = {item for item in items if item.startswith("swap")} & set(items[-3:])

    def ada(item: str, shown: dict[str, Any]) -> Mapping[str, Any]:
        return {"ranks": [[2, 2, 1] if item in wrong else [1, 1, 2]]}

    def ben(item: str, shown: dict[str, Any]) -> Mapping[str, Any]:
        return {"ranks": [[1, 2, 3]]}

    files = [saved(plan, "ada", ada), saved(plan, "ben", ben)]
    found = table(hard_positives, tmp_path / "m", "--human", *files)

    shares = {
        subset: [float(found["human", subset, metric]["value"]) for metric in METRICS]
        for subset in ("swap", "replace", "all", "macro average")
    }
    assert shares == {
        "swap": pytest.approx([0.97, 0.97, 0]),
        "replace": pytest.approx([1, 1, 0]),
        "all": pytest.approx([0.985, 0.985, 0]),
        "macro average": pytest.approx([0.985, 0.985, 0]),
    }
    row = found["human", "all", "augmented"]
    assert (row["expected"], row["scored"], row["missing"]) == ("200", "200", "0")
    ranks = taken(hard_positives, files, tmp_path / "ranks.jsonl")
    assert {each["sample_id"] for each in ranks} == set(items)
    by_id = {each["sample_id"]: each["ranks"] for each in ranks}
    assert by_id[min(wrong)] == {"ada": [[2, 2, 1]], "ben": [[1, 2, 3]]}


def test_people_stand_beside_models_on_the_samples_that_both_have(
    hard_positives: Path, tmp_path: Path
) -> None:
    keys = [row["sample_id"] for row in rows_in(hard_positives, "samples")]
    rng = np.random.default_rng(1)
    values = rng.normal(size=(len(keys), 3)).astype(np.float32)
    tables = {
        "scores": [
            {"sample_id": k, "values": v} for k, v in zip(keys, values.tolist(), strict=True)
        ]
    }
    scores = write_scores(tmp_path / "s", hard_positives, "hard-positives", tables)
    plan = planned(hard_positives, tmp_path / "p", "caption-ranking", "ada ben", "--sample", 40)
    skipped = given(plan, "ada/tasks")["tasks"][0][0]

    def ranks(item: str, shown: dict[str, Any]) -> Mapping[str, Any] | None:
        return None if item == skipped else {"ranks": [[1, 1, 3]]}

    files = [saved(plan, name, ranks) for name in ("ada", "ben")]
    found = table(hard_positives, tmp_path / "m", scores, "--human", *files)

    row = found["human", "all", "augmented"]
    assert (row["value"], row["expected"], row["missing"]) == ("1.0", "40", "1")
    model = next(name for name, _, _ in found if name != "human")
    assert found[model, "all", "augmented"]["expected"] == "260"
    with (tmp_path / "m" / "comparisons.csv").open() as file:
        compared = [r for r in csv.DictReader(file) if r["metric"] == "augmented"]
    (one,) = [r for r in compared if r["subset"] == "all"]
    seen = [
        n
        for n, key in enumerate(keys)
        if key in {i for i, _ in given(plan, "ada/tasks")["tasks"]} - {skipped}
    ]
    theirs = (values[seen, 2] < values[seen, :2].min(axis=1)).mean()
    assert float(one["difference"]) == pytest.approx(1 - theirs)


def test_ranks_of_pairs_have_text_image_and_group_scores(tmp_path: Path) -> None:
    dataset = write_squares(tmp_path / "d")
    total = len(rows_in(dataset, "samples"))
    plan = planned(dataset, tmp_path / "p", "caption-ranking", "ada", "--overlap", 1)
    wrong = {given(plan, "ada/tasks")["tasks"][0][0]}

    def ranks(item: str, shown: dict[str, Any]) -> Mapping[str, Any]:
        """Of the first picture the captions tie: no score counts."""
        return {"ranks": [[1, 1], [2, 1]] if item in wrong else [[1, 2], [2, 1]]}

    found = table(dataset, tmp_path / "m", "--human", saved(plan, "ada", ranks))

    shares = [float(found["human", "all", name]["value"]) for name in ("text", "image", "group")]
    assert shares == pytest.approx([1 - 1 / total] * 3)


def test_what_was_skipped_is_no_vote_that_agrees(
    hard_positives: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(hard_positives, tmp_path / "p", "caption-ranking", "ada ben", "--sample", 4)
    first, second, *_ = sorted({item for item, _ in given(plan, "ada/tasks")["tasks"]})

    def ada(item: str, shown: dict[str, Any]) -> Mapping[str, Any] | None:
        return None if item in (first, second) else {"ranks": [[1, 1, 2]]}

    def ben(item: str, shown: dict[str, Any]) -> Mapping[str, Any] | None:
        return None if item == first else {"ranks": [[1, 1, 2]]}

    files = [saved(plan, "ada", ada), saved(plan, "ben", ben)]
    taken(hard_positives, files, tmp_path / "o.jsonl")
    told = capsys.readouterr().out
    assert "over 2 items with two votes or more; 2 unanimous" in told
    assert told.count("100% agreement with other reviewers") == 2


def test_one_item_has_no_interval(
    hard_positives: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(hard_positives, tmp_path / "p", "caption-ranking", "ada ben", "--sample", 1)
    ranks = {"ada": [1, 2, 3], "ben": [1, 3, 2]}
    files = [saved(plan, name, always({"ranks": [own]})) for name, own in ranks.items()]
    taken(hard_positives, files, tmp_path / "o.jsonl")
    told = capsys.readouterr().out
    assert "[no interval] over 1 item with two votes or more; 0 unanimous" in told
    assert "[nan" not in told


def test_a_sample_is_brittle_where_it_is_for_one(hard_positives: Path, tmp_path: Path) -> None:
    """Original accuracy less the augmented one is what is brittle of these."""
    plan = planned(hard_positives, tmp_path / "p", "caption-ranking", "ada ben", "--sample", 4)
    brittle = given(plan, "ada/tasks")["tasks"][0][0]

    def ada(item: str, shown: dict[str, Any]) -> Mapping[str, Any]:
        return {"ranks": [[1, 3, 2]] if item == brittle else [[1, 1, 2]]}

    files = [saved(plan, "ada", ada), saved(plan, "ben", always({"ranks": [[1, 1, 2]]}))]
    found = table(hard_positives, tmp_path / "m", "--human", *files)
    shares = [float(found["human", "all", metric]["value"]) for metric in METRICS]
    assert shares == [1.0, 0.75, 0.25]


# --- pictures that are put in order


def noisy(true: Sequence[str], spread: float, seed: str) -> list[str]:
    """The true order, seen with noise."""
    rng = random.Random(seed)
    return sorted(true, key=lambda each: true.index(each) + rng.gauss(0, spread))


def test_models_are_held_against_the_order_of_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five people of known noise find the true order; the interval of a model has its truth."""
    dataset = built("retrieval-perturbations")
    names = [row["image_id"] for row in rows_in(dataset, "images")]
    queries = [
        {
            "id": f"q{n}",
            "text": f"text {n}",
            "images": sorted(names, key=lambda e: sha256_hex(f"{e} {n}".encode())),
        }
        for n in range(6)
    ]
    file = tmp_path / "queries.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in queries))
    people = "ada ben cy dan eve"
    plan = planned(dataset, tmp_path / "p", "picture-ranking", people, "--of", file)
    true = {each["id"]: each["images"] for each in queries}

    def order(name: str) -> Answer:
        return lambda item, shown: {"order": noisy(true[item], 1.0, f"{name} {item}")}

    files = [saved(plan, name, order(name)) for name in people.split()]
    model = {item: noisy(images, 2.0, f"model {item}") for item, images in true.items()}
    lines = [
        f"{item},{image},{-place}"
        for item, some in model.items()
        for place, image in enumerate(some)
    ]
    scores = tmp_path / "model.csv"
    scores.write_text("\n".join(["query,image_id,score", *lines]))

    more = ("--of", file, "--scores", scores)
    capsys.readouterr()
    ranked = taken(dataset, files, tmp_path / "order.jsonl", *more, "--json")

    outcome = json.loads(capsys.readouterr().out)
    assert {each["people"] for each in ranked} == {5}
    means = {one["id"]: {e["image_id"]: e["mean_rank"] for e in one["images"]} for one in ranked}
    close = [rho(list(own), true[query]) for query, own in means.items()]
    assert np.mean(close) > 0.9
    (theirs,) = outcome["models"]
    low, high = theirs["spearman_interval"]
    assert low < np.mean([rho(model[query], true[query]) for query in true]) < high
    exact = [
        kendalltau(range(len(names)), [means[query][image] for image in model[query]]).statistic
        for query in true
    ]
    assert theirs["kendall"] == pytest.approx(np.mean(exact))
    assert [each["name"] for each in outcome["people"]] == people.split()
    assert min(each["spearman"] for each in outcome["people"]) > theirs["spearman"] > 0


def test_correlations_are_those_of_scipy_and_none_where_all_tie() -> None:
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 4, 9).astype(np.float64)
    means = rng.integers(1, 6, (50, 9)).astype(np.float64)
    found = _correlated(scores, means)
    assert found[:, 0] == pytest.approx([spearmanr(scores, -each).statistic for each in means])
    assert found[:, 1] == pytest.approx([kendalltau(scores, -each).statistic for each in means])
    assert _correlated(np.ones(9), means).tolist() == [[0, 0]] * 50


def test_people_who_say_the_opposite_say_nothing_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = built("retrieval-perturbations")
    plan = planned(dataset, tmp_path / "p", "picture-ranking", "ada ben", "--sample", 2)

    def order(step: int) -> Answer:
        return lambda item, one: {"order": sorted(one["images"])[::step]}

    files = [saved(plan, name, order(step)) for name, step in (("ada", 1), ("ben", -1))]
    scores = tmp_path / "model.csv"
    images = sorted({row["image_id"] for row in rows_in(dataset, "images")})
    queries = sorted({item for item, _ in given(plan, "ada/tasks")["tasks"]})
    lines = [f"{item},{image},{place}" for item in queries for place, image in enumerate(images)]
    scores.write_text("\n".join(["query,image_id,score", *lines]))
    capsys.readouterr()
    taken(dataset, files, tmp_path / "o.jsonl", "--scores", scores, "--json")
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert (model["spearman"], model["kendall"]) == (0, 0)
    scores.write_text("\n".join(["query,image_id,score", *lines, lines[0]]))
    argv = ["import", dataset, *files, "--output", tmp_path / "x.jsonl", "--scores", scores]
    assert f"query '{queries[0]}' has two scores for" in refused(argv, capsys)
    item, image, _ = lines.pop().split(",")
    for score in ("inf", "nan"):
        scores.write_text("\n".join(["query,image_id,score", f"{item},{image},{score}", *lines]))
        assert f"line 2: score: expected a number, found {score}" in refused(argv, capsys)


def test_pictures_of_other_texts_take_no_room() -> None:
    """Ranks of a thousand texts, each with its own pictures, are counted in a few megabytes."""
    votes = {
        f"q{n}": {
            name: Vote(task=1, id=f"q{n}", answer="given", order=tuple(f"{n}/{k}" for k in order))
            for name, order in (("ada", (0, 1, 2)), ("ben", (2, 1, 0)))
        }
        for n in range(1000)
    }
    counts = counts_of(votes, "order")
    assert counts.shape == (1000, 3, 3)
    assert counts[0].tolist() == [[1, 0, 1], [0, 2, 0], [1, 0, 1]]


def named(folder: Path, names: Sequence[str], ids: Sequence[int]) -> Path:
    """A dataset whose pictures, by number, have some names in its source."""
    pictures = {sha256_hex(data): data for data in map(picture, range(3))}
    keys = sorted(pictures)
    rows = [
        {"sample_id": f"s{n}", "image": name, "image_id": keys[number], "hard_negative_kind": "x"}
        | {each: f"{each} {n}" for each in CAPTIONS}
        for n, (name, number) in enumerate(zip(names, ids, strict=True))
    ]
    return write_dataset(
        folder, "hard-positives", {"samples": rows, "images": image_rows(pictures)}
    )


def test_names_of_pictures_are_all_that_their_source_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "q.jsonl"
    query = {"id": "q", "text": "t", "images": ["a.jpg", "c.jpg"]}
    file.write_text(json.dumps(query))
    argv = ["--protocol", "picture-ranking", "--reviewers", "ada", "--of", file]
    twice = named(tmp_path / "twice", ("a.jpg", "b.jpg", "c.jpg"), (0, 0, 1))
    assert review.main([*map(str, ["plan", twice, *argv, "--output", tmp_path / "p"])]) == 0
    same = named(tmp_path / "same", ("a.jpg", "a.jpg", "c.jpg"), (0, 1, 2))
    said = refused(["plan", same, *argv, "--output", tmp_path / "x"], capsys)
    assert "line 1: several images are named 'a.jpg'; use image ids" in said
    ids = sorted(row["image_id"] for row in rows_in(same, "images"))
    file.write_text(json.dumps(query | {"images": [ids[0], "c.jpg"]}))
    assert review.main([*map(str, ["plan", same, *argv, "--output", tmp_path / "ids"])]) == 0
    many = ["a.jpg"] * 101
    file.write_text(json.dumps(query | {"images": many}))
    assert "images: expected 2 to 100 different images" in refused(
        ["plan", twice, *argv, "--output", tmp_path / "x"], capsys
    )


def rho(found: Sequence[str], true: Sequence[str]) -> float:
    value: float = spearmanr(range(len(found)), [true.index(each) for each in found]).statistic
    return value


def test_captions_of_a_gallery_are_queries_and_vectors_are_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = built("retrieval-perturbations")
    captions = {row["caption_id"]: row for row in rows_in(dataset, "captions")}
    pictures = sorted({row["image_id"] for row in captions.values()})
    plan = planned(dataset, tmp_path / "p", "picture-ranking", "ada ben", "--sample", 2)
    assert digests(plan) == digests(
        planned(dataset, tmp_path / "again", "picture-ranking", "ben,ada", "--sample", 2)
    )
    shown = given(plan, "ada/items/0")
    for (item, _), one in zip(given(plan, "ada/tasks")["tasks"], shown, strict=True):
        assert len(one["images"]) == min(PICTURES_A_QUERY, len(pictures))
        assert captions[item]["image_id"] in one["images"]
        assert one["texts"][0]["parts"] == [captions[item]["caption"]]
    assert shown[0]["images"] != sorted(shown[0]["images"])

    files = [
        saved(plan, n, lambda item, one: {"order": sorted(one["images"])}) for n in ("ada", "ben")
    ]
    texts = sorted({row["caption"] for row in captions.values()})
    line = np.stack(
        [np.cos(np.linspace(0, 1, len(pictures))), np.sin(np.linspace(0, 1, len(pictures)))], 1
    )
    tables = {
        "image_vectors": vectors("image_id", pictures, line),
        "caption_vectors": vectors("caption", texts, np.tile([1.0, 0.0], (len(texts), 1))),
    }
    scores = write_scores(tmp_path / "s", dataset, "retrieval", tables)
    taken(dataset, files, tmp_path / "o.jsonl", "--scores", scores)
    said = " ".join(capsys.readouterr().out.split())
    assert "Krippendorff's alpha 1.000" in said
    assert "compared with people: Spearman's rho 1.000" in said

    other = [saved(plan, "ada", lambda item, one: {"order": sorted(one["images"])[1:]})]
    argv = ["import", dataset, *other, "--output", tmp_path / "x.jsonl"]
    assert "does not rank exactly the images of the task" in refused(argv, capsys)


# --- VLUE: what is written and drawn becomes rows that its build reads


@pytest.fixture(scope="module")
def vlue() -> Path:
    return built("vlue")


SENTENCE = "A red dog stands on a green table beside {}."


def rebuilt(dataset: Path, output: Path, *files: object) -> Path:
    argv = ["build", "vlue", "--images", dataset.parent / "images", *files, "--output", output]
    assert eqforge(list(map(str, argv))) == 0
    return output


def test_what_people_write_for_vlue_builds_vlue_again(vlue: Path, tmp_path: Path) -> None:
    answers: dict[str, Answer] = {
        "vlue-captions": lambda item, shown: {"texts": {"caption": SENTENCE.format(item[:4])}},
        "vlue-translation": lambda item, shown: {"texts": {"sentence": " Both of  them are red. "}},
        "vlue-questions": lambda item, shown: {
            "texts": {"question": "What is shown?", "answer_0": "a dog", "answer_1": "a cat"}
        },
        "vlue-boxes": lambda item, shown: {
            "texts": {"object": "dog"},
            "box": [0.25, 0.5, 0.5, 0.25],
        },
    }
    for protocol, answer in answers.items():
        plan = planned(vlue, tmp_path / protocol, protocol, "ada ben")
        busy = [name for name in ("ada", "ben") if (plan / f"{name}.html").exists()]
        files = [saved(plan, name, answer) for name in busy]
        taken(vlue, files, tmp_path / f"{protocol}.jsonl")
    boxes = tmp_path / "vlue-boxes.jsonl"
    plan = planned(vlue, tmp_path / "vlue-expressions", "vlue-expressions", "cy", "--of", boxes)
    assert given(plan, "cy/items/0")[0]["panes"][0]["boxes"][0]["x"] == pytest.approx(
        0.25, abs=0.01
    )
    file = saved(plan, "cy", lambda item, shown: {"texts": {"text": "red dog"}})
    taken(vlue, [file], tmp_path / "vlue-expressions.jsonl", "--of", boxes)

    options = {
        "--retrieval": "vlue-captions",
        "--captioning": "vlue-captions",
        "--nlvr2": "vlue-translation",
        "--vqa": "vlue-questions",
        "--grounding": "vlue-expressions",
    }
    named = [part for o, p in options.items() for part in (o, tmp_path / f"{p}.jsonl")]
    again = rebuilt(vlue, tmp_path / "again", *named)

    assert all(candidates == kept for candidates, kept, _ in books(again).values())
    assert rows_in(again, "findings") == []
    pictures = {row["image_id"]: row for row in rows_in(vlue, "images")}
    retrieved = {row["image_id"]: row["caption"] for row in rows_in(again, "retrieval")}
    assert retrieved == {image: SENTENCE.format(image[:4]) for image in pictures}
    (first,) = rows_in(vlue, "nlvr2")
    (second,) = rows_in(again, "nlvr2")
    assert second["statement"] == "Both of them are red."
    names = ("image_0_id", "image_1_id", "label")
    assert [second[name] for name in names] == [first[name] for name in names]
    asked = rows_in(again, "vqa")
    assert {(row["image_id"], row["answers"][0]) for row in asked} == {
        (first["image_0_id"], "a dog"),
        (first["image_1_id"], "a cat"),
    }
    for row in rows_in(again, "grounding"):
        box, size = row["box"], pictures[row["image_id"]]
        assert box["x"] == pytest.approx(0.25 * size["width_px"], abs=0.01)
        assert box["height"] == pytest.approx(0.25 * size["height_px"], abs=0.01)


@pytest.fixture(scope="module")
def phrase_box(vlue: Path) -> list[float]:
    """The box of the one phrase, as shares of its picture."""
    (row,), sizes = rows_in(vlue, "grounding"), rows_in(vlue, "images")
    size = next(each for each in sizes if each["image_id"] == row["image_id"])
    sides = {"x": "width_px", "y": "height_px", "width": "width_px", "height": "height_px"}
    return [row["box"][name] / size[side] for name, side in sides.items()]


def test_boxes_that_others_do_not_find_are_dropped(
    vlue: Path, phrase_box: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Boxes of two people that both are found agree."""
    plan = planned(vlue, tmp_path / "p", "vlue-boxes-check", "ada")
    (row,), (shown,) = rows_in(vlue, "grounding"), given(plan, "ada/items/0")
    assert shown["panes"][0]["boxes"] == []
    assert shown["texts"][0]["parts"] == [row["phrase"]]
    x, y, width, height = phrase_box
    for name, share, decision, reason in (
        ("found", 1, "keep", ""),
        ("half", 0.49, "drop", "another box was drawn"),
        ("more", 0.51, "keep", ""),
        ("skipped", None, "drop", ""),
    ):
        answer = None if share is None else {"box": [x, y, share * width, height]}
        file, answers = saved(plan, "ada", always(answer)), tmp_path / f"all-{name}.jsonl"
        (decided,) = taken(vlue, [file], tmp_path / f"{name}.jsonl", "--answers", answers)
        assert (decided["decision"], decided.get("reason", "")) == (decision, reason)
        kept = json.loads(answers.read_text())  # what was drawn is among the answers
        assert kept.get("box") == (None if answer is None else answer["box"])
    plan = planned(vlue, tmp_path / "both", "vlue-boxes-check", "ada ben", "--overlap", 2)
    boxes = {"ada": phrase_box, "ben": [x, y, 0.9 * width, height]}
    files = [saved(plan, name, always({"box": box})) for name, box in boxes.items()]
    (decided,) = taken(vlue, files, tmp_path / "both.jsonl")
    assert decided["votes"] == {"keep": 2, "drop": 0, "unsure": 0}
    assert capsys.readouterr().out.count("100% agreement with other reviewers") == 2


def test_boxes_are_inside_the_picture_and_have_an_area(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(vlue, tmp_path / "p", "vlue-boxes", "ada", "--sample", 1)
    for box, is_fine in (
        ([0, 0, 1, 1], True), ([0.999, 0, 0.001, 1], True), ([0.2, 0.1, 0.8 + 1e-9, 0.9], True),
        ([0, 0, 1.1, 1], False), ([-1e-9, 0, 1, 1], False), ([1, 1, 1e-7, 1e-7], False),
    ):  # fmt: skip
        file = saved(plan, "ada", always({"texts": {"object": "dog"}, "box": box}))
        argv = ["import", vlue, file, "--output", tmp_path / "o", "--overwrite"]
        if is_fine:
            assert review.main(list(map(str, argv))) == 0
            assert capsys.readouterr().out.endswith(": 1 box\n")
        else:
            assert "box: expected a box inside the image" in refused(argv, capsys)


def test_a_box_that_two_people_drew_is_one(vlue: Path, tmp_path: Path) -> None:
    plan = planned(vlue, tmp_path / "p", "vlue-boxes", "ada ben", "--overlap", 2, "--sample", 1)
    said = always({"texts": {"object": "dog"}, "box": [0, 0, 1, 1]})
    boxes = tmp_path / "boxes.jsonl"
    assert len(taken(vlue, [saved(plan, name, said) for name in ("ada", "ben")], boxes)) == 1
    planned(vlue, tmp_path / "q", "vlue-expressions", "cy", "--of", boxes)


def test_two_pictures_are_one_pair_whichever_is_named_first(tmp_path: Path) -> None:
    pictures = {sha256_hex(data): data for data in map(picture, range(2))}
    one, two = sorted(pictures)
    rows = [
        {"sample_id": name, "image_0_id": first, "image_1_id": second}
        for name, first, second in (("a", one, two), ("b", two, one), ("c", one, one))
    ]
    dataset = write_pairs(tmp_path / "d", {"samples": rows, "images": image_rows(pictures)})
    assert list(units_of(open_dataset(str(dataset)), "picture pairs").ids) == ["a"]


def test_texts_that_break_a_rule_make_no_rows_and_are_kept_among_the_answers(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(vlue, tmp_path / "p", "vlue-captions", "ada")
    said = iter(["too short", "There is a dog that stands on a green table.", ""])

    def answer(item: str, shown: dict[str, Any]) -> Mapping[str, Any]:
        return {"texts": {"caption": next(said, SENTENCE.format("it"))}}

    file = saved(plan, "ada", answer)
    total = len(given(plan, "ada/tasks")["tasks"])
    answers = tmp_path / "answers.jsonl"
    rows = taken(vlue, [file], tmp_path / "rows.jsonl", "--answers", answers)

    told = capsys.readouterr().out
    assert len(rows) == total - 3
    for rule in ("few_words", "not_first", "empty"):
        assert f"1 text left out: {rule}" in told
    kept = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(kept) == total
    assert "too short" in {each["texts"]["caption"] for each in kept}


def test_answers_of_two_pictures_differ_and_may_have_to_be_listed(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = protocols()["vlue-questions"].fields
    texts = {"question": "What is it?", "answer_0": "Dog", "answer_1": " dog "}
    assert list(broken(texts, fields, 2)) == [("answer_1", "same_answer")]
    assert list(broken(texts | {"answer_1": "cat"}, fields, 2)) == []
    listed = {"Dog", "bird"}
    assert list(broken(texts | {"answer_1": "cat"}, fields, 2, listed)) == [
        ("answer_1", "not_listed")
    ]
    answers = tmp_path / "list.txt"
    answers.write_text("a dog\nbird\n")
    plan = planned(vlue, tmp_path / "p", "vlue-questions", "ada", "--answer-list", answers)
    assert given(plan, "ada/tasks")["answers"] == ["a dog", "bird"]
    write = {"question": "What is it?", "answer_0": "a dog", "answer_1": "a cat"}
    file = saved(plan, "ada", lambda item, shown: {"texts": write})
    capsys.readouterr()
    assert taken(vlue, [file], tmp_path / "r.jsonl", "--answer-list", answers) == []
    assert "1 text left out: not_listed" in capsys.readouterr().out


def test_what_tasks_are_made_of_makes_the_plan_and_is_checked(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [row["image_id"] for row in rows_in(vlue, "images")][:2]
    files = []
    for text in ("a dog", "a cat"):
        files.append(tmp_path / f"{text[2:]}.jsonl")
        files[-1].write_text(json.dumps({"id": "q", "text": text, "images": names}) + "\n")
    plan = planned(vlue, tmp_path / "p", "picture-ranking", "ada", "--of", files[0])
    file = saved(plan, "ada", lambda item, shown: {"order": shown["images"]})
    argv = ["import", vlue, file, "--output", tmp_path / "rows.jsonl"]
    said = "the review was planned with a different file; pass that file with --of"
    assert f"--of {files[1]}: {said}" in refused([*argv, "--of", files[1]], capsys)
    assert taken(vlue, [file], tmp_path / "rows.jsonl", "--of", files[0])

    plans = []
    for number, answers in enumerate(("yes", "yes\nno")):
        listed = tmp_path / f"{number}.txt"
        listed.write_text(answers + "\n")
        folder = planned(
            write_squares(tmp_path / "d"),
            tmp_path / f"q{number}",
            "vlue-questions",
            "ada",
            "--answer-list",
            listed,
        )
        plans.append(given(folder, "ada/tasks")["plan"])
    assert plans[0] != plans[1]


def test_a_protocol_of_ones_own_may_ask_for_texts(
    vlue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "mood"\nquestion = "Which mood is it?"\nform = "write"\n'
        'fields = [{name = "mood", label = "Mood", never = ["nice"]}]\n'
    )
    dataset = write_squares(tmp_path / "d")
    plan = planned(dataset, tmp_path / "p", str(own), "ada")
    file = saved(plan, "ada", lambda item, shown: {"texts": {"mood": f"calm {item}"}})
    rows = taken(dataset, [file], tmp_path / "rows.jsonl")
    assert {row["item"] for row in rows} == {r["sample_id"] for r in rows_in(dataset, "samples")}
    assert all(row["mood"] == f"calm {row['item']}" and len(row["images"]) == 2 for row in rows)
    argv = ["import", dataset, saved(plan, "ada", always(None), fields=[]), "--output", own]
    assert "the fields of the protocol 'mood' are missing" in refused(
        [*argv, "--overwrite"], capsys
    )
    file = saved(plan, "ada", always({"texts": {"mood": "a nice one"}}))
    assert taken(dataset, [file], tmp_path / "none.jsonl") == []
    assert f"{len(rows)} texts left out: never" in capsys.readouterr().out


# --- in a browser


def voted(page: Page, folder: Path) -> dict[str, Any]:
    with page.page.expect_download() as download:
        page.page.click("#save")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def wait(page: Page) -> None:
    page.page.wait_for_selector("#single[aria-busy=false]")


def test_captions_are_ranked_by_keys_whatever_their_order(
    opened: Callable[..., Page], hard_positives: Path, tmp_path: Path
) -> None:
    plan = planned(hard_positives, tmp_path / "p", "caption-ranking", "ada", "--sample", 4)
    page = opened(plan).open("ada.html")
    orders = set()
    for _ in range(4):
        wait(page)
        shown = page.page.locator(".rank > span:first-child").all_inner_texts()
        orders.add(tuple(text.rsplit(" ", 1)[0] for text in shown))
        page.press("Enter")
        assert page.page.inner_text("#missing") == "Give each caption a rank."
        page.press(*[str(1 + CAPTIONS.index(text.rsplit(" ", 1)[0])) for text in shown])
        page.press("Enter")
    page.count("all 4 answered")
    found = voted(page, tmp_path)
    assert found["form"] == "rank"
    rows = taken(hard_positives, [tmp_path / "votes-ada.json"], tmp_path / "o")
    assert [row["ranks"] for row in rows] == [{"ada": [[1, 2, 3]]}] * 4
    assert len(orders) > 1
    page.press("z")
    wait(page)
    assert page.page.locator(".rank input:checked").count() == 3


def test_both_pictures_of_a_pair_are_ranked_whichever_stands_first(
    opened: Callable[..., Page], tmp_path: Path
) -> None:
    dataset = write_squares(tmp_path / "d")
    plan = planned(dataset, tmp_path / "p", "caption-ranking", "ada", "--overlap", 1)
    chunk = given(plan, "ada/items/0")
    assert {tuple(one["places"]) for one in chunk} == {(0, 1), (1, 0)}
    page = opened(plan).open("ada.html")
    for one in chunk:
        wait(page)
        shown = page.page.locator(".rank > span:first-child").all_inner_texts()
        right = [
            "1" if text.endswith("left") == (one["places"][row] == 0) else "2"
            for row, text in zip((0, 0, 1, 1), shown, strict=True)
        ]
        page.press(*right, "Enter")
    page.count(f"all {len(chunk)} answered")
    voted(page, tmp_path)
    rows = taken(dataset, [tmp_path / "votes-ada.json"], tmp_path / "o")
    assert all(row["ranks"] == {"ada": [[1, 2], [2, 1]]} for row in rows)


def test_pictures_are_put_in_order_and_the_order_is_taken_back(
    opened: Callable[..., Page], tmp_path: Path
) -> None:
    dataset = built("retrieval-perturbations")
    plan = planned(dataset, tmp_path / "p", "picture-ranking", "ada", "--sample", 1)
    (shown,) = given(plan, "ada/items/0")
    page = opened(plan).open("ada.html")
    wait(page)
    choices = page.page.locator(".choice")
    count = choices.count()
    page.page.set_viewport_size({"width": 400, "height": 400})
    choices.last.scroll_into_view_if_needed()
    assert page.page.locator(".query").evaluate(
        """each => {
          const { left, top, width, height } = each.getBoundingClientRect();
          const seen = document.elementFromPoint(left + width / 2, top + height / 2);
          return scrollY > 0 && each.contains(seen);
        }"""
    )
    page.press("ArrowLeft")
    assert choices.nth(count - 1).evaluate("each => each === document.activeElement")
    for place in range(count - 2, -1, -1):
        choices.nth(place).click()
    choices.nth(count - 1).click()
    assert choices.nth(count - 1).get_attribute("aria-pressed") == "false"
    page.page.click("[data-answer=given]")
    assert page.page.inner_text("#missing") == "Select the last image."
    page.page.reload()  # what was chosen stays
    wait(page)
    choices.nth(count - 1).click()
    page.press("Enter")  # of a picture that was just clicked too
    page.count("all 1 answered")
    (vote,) = voted(page, tmp_path)["votes"]
    assert vote["order"] == [*shown["images"][count - 2 :: -1], shown["images"][count - 1]]
    page.open("ada.html")
    page.count("all 1 answered")


def test_texts_keep_the_same_rules_on_the_page_as_in_the_import(
    opened: Callable[..., Page], vlue: Path, tmp_path: Path
) -> None:
    plan = planned(vlue, tmp_path / "p", "vlue-captions", "ada")
    page = opened(plan).open("ada.html")
    (field,) = protocols()["vlue-captions"].fields
    long = "a dog that stands on a green table"
    for text, told in (
        ("", "Caption is empty."),
        ("   ", "Caption is empty."),
        ("one two three four five six seven", "Caption needs at least 8 words."),
        (f"there IS {long}", 'Caption must not start with "there is".'),
        (f"There  is {long}", 'Caption must not start with "there is".'),
        ("одна собака стоит", "Caption needs at least 8 words."),
    ):
        wait(page)
        page.page.fill("textarea", text)
        page.press("Enter")
        assert page.page.inner_text("#missing") == told
        assert list(broken({"caption": text}, (field,), 1))
    page.page.fill("textarea", f"Therein {long}")
    page.page.reload()
    wait(page)
    page.page.focus("textarea")
    assert not list(broken({"caption": f"Therein {long}"}, (field,), 1))
    page.press("Enter")
    page.page.wait_for_function("() => !document.querySelector('textarea').value")
    page.page.click("[data-answer=skipped]")
    page.page.click("[data-reason='it is too hard']")
    wait(page)
    page.page.click("#undo")
    page.page.click("#undo")
    page.page.wait_for_function(
        "() => document.querySelector('textarea').value.startsWith('Therein')"
    )
    page.press("Enter")
    wait(page)
    assert voted(page, tmp_path)["votes"][0]["texts"] == {"caption": f"Therein {long}"}


def test_what_was_skipped_by_a_slip_comes_back(
    opened: Callable[..., Page], vlue: Path, tmp_path: Path
) -> None:
    page = opened(planned(vlue, tmp_path / "p", "vlue-captions", "ada")).open("ada.html")
    wait(page)
    page.page.fill("textarea", "half a caption")
    page.page.fill("#note", "hm")
    page.page.click("[data-answer=skipped]")
    page.page.click("[data-reason='it is too hard']")
    page.page.wait_for_function("() => !document.querySelector('textarea').value")
    page.page.reload()
    wait(page)
    page.page.click("#undo")
    page.page.wait_for_function(
        "() => document.querySelector('textarea').value === 'half a caption'"
    )
    assert page.page.input_value("#note") == "hm"
    assert voted(page, tmp_path)["votes"] == []


def test_a_page_that_is_open_twice_loses_no_vote(
    opened: Callable[..., Page], tmp_path: Path
) -> None:
    dataset = write_squares(tmp_path / "d")
    plan = planned(dataset, tmp_path / "p", "eq-sd-filter", "ada")
    page = opened(plan).open("ada.html")
    wait(page)
    twice = Page(page.page.context.new_page(), plan).open("ada.html")
    wait(twice)
    page.press("k")
    page.page.wait_for_function("() => document.getElementById('progress')?.value === 1")
    twice.page.wait_for_function("() => document.getElementById('progress')?.value === 1")
    wait(twice)
    twice.press("u")
    twice.page.wait_for_function("() => document.getElementById('progress')?.value === 2")
    assert [each["answer"] for each in voted(twice, tmp_path)["votes"]] == ["keep", "unsure"]
    assert twice.wrong == []


def test_a_box_of_ones_own_has_a_name_of_the_list(
    opened: Callable[..., Page], vlue: Path, tmp_path: Path
) -> None:
    own, answers = tmp_path / "own.toml", tmp_path / "list.txt"
    own.write_text(
        'name = "things"\nquestion = "What is it?"\nform = "box"\n'
        'fields = [{name = "what", label = "Name", listed = true}]\n'
    )
    answers.write_text("dog\n")
    more = ("--answer-list", answers, "--sample", 1)
    page = opened(planned(vlue, tmp_path / "p", str(own), "ada", *more)).open("ada.html")
    wait(page)
    for place, number in enumerate(("10", "10", "50", "50")):
        page.page.locator("[type=number]").nth(place).fill(number)
    page.page.fill("textarea", "cat")
    page.press("Enter")
    assert page.page.inner_text("#missing") == "Name is not in the list of answers."
    page.page.fill("textarea", "dog")
    page.press("Enter")
    page.count("all 1 answered")


def test_words_of_place_are_told_apart_from_words_that_have_them(
    opened: Callable[..., Page], vlue: Path, tmp_path: Path
) -> None:
    boxes = tmp_path / "boxes.jsonl"
    plan = planned(vlue, tmp_path / "b", "vlue-boxes", "ada", "--sample", 1)
    box = {"texts": {"object": "dog"}, "box": [0, 0, 0.5, 0.5]}
    taken(vlue, [saved(plan, "ada", lambda item, shown: box)], boxes)
    plan = planned(vlue, tmp_path / "p", "vlue-expressions", "ada", "--of", boxes)
    page = opened(plan).open("ada.html")
    fields = protocols()["vlue-expressions"].fields
    for text, is_fine in (
        ("the Left dog", False), ("dog next to it", False), ("first-aid box", False),
        ("LAST", False), ("собака left", False), ("frontier leftovers", True),
    ):  # fmt: skip
        wait(page)
        assert (not list(broken({"text": text}, fields, 1))) is is_fine
        page.page.fill("textarea", text)
        page.press("Enter")
        assert (page.page.inner_text("#missing") == "") is is_fine
    page.count("all 1 answered")


def test_a_box_is_drawn_with_the_pointer_or_written(
    opened: Callable[..., Page], vlue: Path, tmp_path: Path
) -> None:
    plan = planned(vlue, tmp_path / "p", "vlue-boxes", "ada", "--sample", 2)
    page = opened(plan).open("ada.html")
    wait(page)
    page.press("Enter")
    assert page.page.inner_text("#missing") == "Draw a box."
    area = page.page.locator(".frame img").first.bounding_box()
    mouse = page.page.mouse
    mouse.move(area["x"] + 0.75 * area["width"], area["y"] + 0.5 * area["height"])
    mouse.down()
    mouse.move(area["x"] + 0.25 * area["width"], area["y"] + 0.1 * area["height"])
    mouse.up()
    page.page.fill("textarea", "dog ")
    page.page.reload()  # what was drawn and written stays
    wait(page)
    assert page.page.input_value("textarea") == "dog "
    page.press("Enter")
    page.page.wait_for_function("() => !document.querySelector('textarea').value")
    wait(page)
    for name, value in (("left", "10"), ("top", "20"), ("width", "95"), ("height", "30")):
        page.page.fill(f"[aria-label='{name} in percent']", value)
        page.press("Tab")
    page.page.fill("textarea", "cat")
    page.press("Enter")
    page.count("all 2 answered")
    file = voted(page, tmp_path)
    drawn, written = (vote["box"] for vote in file["votes"])
    assert drawn == pytest.approx([0.25, 0.1, 0.5, 0.4], abs=0.01)
    assert written == pytest.approx([0.1, 0.2, 0.9, 0.3])
    rows = taken(vlue, [tmp_path / "votes-ada.json"], tmp_path / "boxes.jsonl")
    assert sorted(row["object"] for row in rows) == ["cat", "dog"]


def test_a_picture_that_cannot_be_shown_is_skipped(
    opened: Callable[..., Page], tmp_path: Path
) -> None:
    data = b"no picture"
    (row,) = image_rows({sha256_hex(picture(0)): picture(0)})
    row |= {"image_id": sha256_hex(data), "image": {"bytes": data, "path": "a.jpg"}}
    sample = {"sample_id": "s", "image": "a.jpg", "image_id": row["image_id"]}
    tables = {"samples": [sample], "images": [row]}
    dataset = write_dataset(tmp_path / "d", "hard-positives", tables)
    for protocol in ("vlue-boxes", "vlue-captions", "caption-ranking"):
        plan = planned(dataset, tmp_path / protocol, protocol, "ada")
        page = opened(plan).open("ada.html")
        wait(page)
        assert "cannot be shown" in page.page.inner_text("#single")
        page.page.click("[data-answer=skipped]")
        page.page.click("[data-reason='']")
        page.count("all 1 answered")


def test_a_field_is_written_for_each_picture(opened: Callable[..., Page], tmp_path: Path) -> None:
    dataset = write_squares(tmp_path / "d")
    plan = planned(dataset, tmp_path / "p", "vlue-questions", "ada")
    chunk = given(plan, "ada/items/0")
    assert {tuple(one["places"]) for one in chunk} == {(0, 1), (1, 0)}
    page = opened(plan).open("ada.html")
    for one in chunk:
        wait(page)
        page.page.fill("[name=question]", "What is it, then?")
        for number, place in enumerate(one["places"], start=1):
            page.page.get_by_label(f"Answer for image {number}").fill(f"of {place}")
        page.press("Enter")
    page.count(f"all {len(chunk)} answered")
    page.page.get_by_role("button", name="Undo the last answer").click()
    wait(page)
    fields = protocols()["vlue-questions"].fields
    for one, two, is_fine in (("Sigma ΟΔΟΣ", "sigma οδος", False), ("straße", "STRASSE", True)):
        page.page.get_by_label("Answer for image 1").fill(one)
        page.page.get_by_label("Answer for image 2").fill(two)
        texts = {"question": "What is it, then?", "answer_0": one, "answer_1": two}
        assert (not list(broken(texts, fields, 2))) is is_fine
        page.press("Enter")
        assert (page.page.inner_text("#missing") == "") is is_fine
    page.count(f"all {len(chunk)} answered")
    for vote in voted(page, tmp_path)["votes"][:-1]:
        assert vote["texts"] == {
            "question": "What is it, then?",
            "answer_0": "of 0",
            "answer_1": "of 1",
        }


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        ("hard-positives", "caption-ranking"),
        ("retrieval-perturbations", "picture-ranking"),
        ("vlue", "vlue-questions"),
        ("vlue", "vlue-boxes"),
    ],
)
def test_everybody_can_answer_in_every_form(
    kind: str, protocol: str, tmp_path: Path, opened: Callable[..., Page]
) -> None:
    """Nothing that axe finds, in either theme, with what is missing told; fit for a phone."""
    from axe_playwright_python.sync_playwright import Axe

    plan = planned(built(kind), tmp_path / "p", protocol, "ada", "--sample", 2)
    for theme, rules in THEMES.items():
        page = opened(plan, color_scheme=theme, bypass_csp=True).open("ada.html")
        wait(page)
        page.page.click("[data-answer=given]")
        assert page.page.inner_text("#missing")
        assert violations(Axe(), page, *rules) == []
        page.page.click("[data-answer=skipped]")
        assert violations(Axe(), page, *rules) == []
    phone = opened(plan, viewport={"width": 360, "height": 700}).open("ada.html")
    wait(phone)
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
