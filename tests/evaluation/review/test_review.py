"""Reviewers of known error rates: their tasks, how far they agree, and the truth that is found."""

import hashlib
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge import cli
from eqforge.commands import review
from eqforge.core.errors import InputError
from eqforge.evaluation.report import of_rows
from eqforge.evaluation.review import agreement as agreement_of_people
from eqforge.evaluation.review.agreement import agreement, alpha_of, decide, reviewers_of
from eqforge.evaluation.review.assign import assign, is_turned
from eqforge.evaluation.review.forms import Vote
from eqforge.evaluation.review.protocols import protocols
from eqforge.evaluation.review.units import check_fits, units_of
from eqforge.evaluation.review.votes import first_votes
from eqforge.schemas.dataset.manifest import Manifest, read_manifest, to_json
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.records.judgements import Decision, Part, Tally
from eqforge.schemas.tables.texts import (
    PERTURBED_TABLE,
    TRAINING_TABLE,
    PerturbedCaption,
    TrainingCaption,
)
from eqforge.sources.errata import disagreed, read_decisions, with_earlier
from eqforge.transforms.dataset.tables import Table
from tests.builds import write_shard
from tests.evaluation.review import reviews
from tests.evaluation.review.reviews import decided
from tests.exported import picture, sample, write_pairs
from tests.reports import digests, given
from tests.statuses import status_of

ITEMS = [f"item/{n}" for n in range(600)]
BAD = set(ITEMS[::3])


def answers(name: str, error: float, items: list[str] = ITEMS) -> Iterator[tuple[str, str]]:
    """What a reviewer says of each item, wrong at a known rate."""
    rng = random.Random(name)
    for item in items:
        is_bad = (item in BAD) != (rng.random() < error)
        yield item, "drop" if is_bad else "keep"


def simulated(errors: Mapping[str, float]) -> dict[str, list[Vote]]:
    return {
        name: [
            Vote(task=n, id=item, answer=answer)  # type: ignore[arg-type]
            for n, (item, answer) in enumerate(answers(name, error), start=1)
        ]
        for name, error in errors.items()
    }


@pytest.mark.parametrize("error", [0.02, 0.25])
def test_agreement_is_what_the_error_rates_make_it(error: float) -> None:
    """Of two votes 2e(1-e) disagree; by chance it would be 2q(1-q), q the share that is dropped."""
    share = len(BAD) / len(ITEMS)
    dropped = share * (1 - error) + (1 - share) * error
    expected = 1 - 2 * error * (1 - error) / (2 * dropped * (1 - dropped))

    found = agreement(first_votes(simulated({"ada": error, "ben": error, "cy": error})))

    assert found.alpha is not None
    low, high = found.interval
    assert low < expected < high
    assert high - low < 0.2
    assert (found.items, found.several) == (len(ITEMS), len(ITEMS))


@pytest.mark.parametrize("rule", ["majority", "weighted", "unanimous"])
def test_the_truth_is_found_as_often_as_the_rule_allows(rule: Any) -> None:
    error = 0.1
    votes = simulated({"ada": error, "ben": error, "cy": error})
    first = first_votes(votes)

    decisions = decide(first, rule, reviewers_of(votes, dict.fromkeys(votes, len(ITEMS))))

    right = sum(each.decision == ("drop" if each.id in BAD else "keep") for each in decisions)
    wrong = sum(each.decision == ("keep" if each.id in BAD else "drop") for each in decisions)
    chance = {"unanimous": (1 - error) ** 3}.get(
        rule, (1 - error) ** 3 + 3 * error * (1 - error) ** 2
    )
    spread = 4 * np.sqrt(chance * (1 - chance) * len(ITEMS))
    assert abs(right - chance * len(ITEMS)) < spread
    if rule == "unanimous":
        assert wrong < 5
    else:
        assert right + wrong == len(ITEMS)


def test_who_answers_repeats_at_random_weighs_less() -> None:
    votes = {
        name: [
            Vote(task=1, id="a", answer=answer),  # type: ignore[arg-type]
            *(Vote(task=2 + n, id=f"r{n}", answer="keep") for n in range(8)),
            *(
                Vote(task=10 + n, id=f"r{n}", answer=again, is_repeat=True)  # type: ignore[arg-type]
                for n in range(8)
            ),
        ]
        for name, answer, again in (("ada", "drop", "keep"), ("ben", "keep", "drop"))
    }
    first, tasks = first_votes(votes), {"ada": 17, "ben": 17}
    ada, ben = reviewers_of(votes, tasks)

    assert (ada.same, ada.repeats, ben.same, ben.repeats) == (8, 8, 0, 8)
    weighted = {each.id: each.decision for each in decide(first, "weighted", (ada, ben))}
    assert weighted["a"] == "drop"
    majority = {each.id: each.decision for each in decide(first, "majority", (ada, ben))}
    assert majority["a"] == "unsure"


@pytest.mark.parametrize(
    ("reasons", "kept"),
    [(("b", "a"), "a"), (("b", "a", "b"), "b"), (("", "", "c"), "c"), (("", ""), "")],
)
def test_of_several_reasons_the_most_frequent_is_kept(reasons: tuple[str, ...], kept: str) -> None:
    """Of as many the first in the alphabet; who gave none has no say in it."""
    votes = {
        f"r{n}": [Vote(task=1, id="a", answer="drop", reason=reason)]
        for n, reason in enumerate(reasons)
    }

    (found,) = decide(first_votes(votes), "majority", reviewers_of(votes, dict.fromkeys(votes, 1)))

    assert (found.decision, found.reason) == ("drop", kept)


def test_alpha_is_that_of_the_published_example() -> None:
    """Krippendorff (2011): observers and missing data as they come; nominal 0.743."""
    data = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    rows = [
        [sum(own == value for own in unit) for value in range(1, 6)]
        for unit in zip(*data, strict=True)
    ]
    counts = np.array([row for row in rows if sum(row) > 1])

    assert alpha_of(counts) == pytest.approx(0.743, abs=0.0005)
    assert alpha_of(counts, "ordinal") == pytest.approx(0.815, abs=0.0005)
    assert alpha_of(counts[:0]) is None
    assert alpha_of(np.array([[2, 0, 0], [3, 0, 0]])) is None


@pytest.mark.parametrize(("reviewers", "overlap"), [(1, 1), (3, 2), (10, 3)])
def test_tasks_are_dealt_evenly_and_by_hash(reviewers: int, overlap: int) -> None:
    names = [f"r{n}" for n in range(reviewers)]
    tasks = assign(ITEMS, names, overlap)

    assert tasks == assign(random.Random(1).sample(ITEMS, len(ITEMS)), names[::-1], overlap)
    own = {name: [t.id for t in some if not t.is_repeat] for name, some in tasks.items()}
    assert {Counter(item for some in own.values() for item in some)[i] for i in ITEMS} == {overlap}
    assert all(len(set(some)) == len(some) for some in own.values())
    assert max(map(len, own.values())) - min(map(len, own.values())) <= 1
    for some in tasks.values():
        assert [task.number for task in some] == list(range(1, len(some) + 1))
        first = {task.id: task.number for task in some if not task.is_repeat}
        again = [task for task in some if task.is_repeat]
        assert len(again) == round(0.05 * len(first))
        assert all(task.number - first[task.id] > 10 for task in again)
    turned = [is_turned(task, name) for name, some in tasks.items() for task in some]
    assert 0.4 < np.mean(turned) < 0.6
    assert assign(["only"], ["ada"], 1)["ada"][0].id == "only"


def test_repeats_lie_anywhere_and_only_where_there_is_room() -> None:
    """Of the tasks near the end as many are repeats as elsewhere; no two stand side by side."""
    names = [f"r{n}" for n in range(40)]
    tasks = assign(ITEMS[:500], names, len(names))
    ends = [task.is_repeat for some in tasks.values() for task in some[-12:]]
    late = [task.is_repeat for some in tasks.values() for task in some[250:]]

    assert np.mean(ends) == pytest.approx(0.05, abs=0.03)
    assert np.mean(late) == pytest.approx(0.05, abs=0.01)
    for some in tasks.values():
        assert not any(a.is_repeat and b.is_repeat for a, b in itertools.pairwise(some))
    for items in range(1, 40):
        own = assign(ITEMS[:items], ["ada"], 1)["ada"]
        first = {task.id: task.number for task in own if not task.is_repeat}
        again = [task for task in own if task.is_repeat]
        assert len(again) == (0 if items <= 10 else round(0.05 * items))
        assert all(task.number - first[task.id] > 10 for task in again)


# --- from the command line

main = status_of(cli.main)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pictures = [picture(n) for n in range(4)]
    shown = [(pictures[n % 3], pictures[n % 3 + 1]) for n in range(40)]
    some = [sample(f"p/{n:02d}", n, shown[n], "test") for n in range(40)]
    return write_pairs(tmp_path_factory.mktemp("d") / "pairs", some, pictures)


def planned(dataset: Path, output: Path, *more: str, reviewers: str = "ada ben cy") -> Path:
    return reviews.planned(dataset, output, "eq-gebc-screening", reviewers, *more)


def test_the_pages_of_reviewers_are_blind_and_the_same_again(dataset: Path, tmp_path: Path) -> None:
    folder = planned(dataset, tmp_path / "a")

    assert digests(folder) == digests(planned(dataset, tmp_path / "b", reviewers="cy,ada ben"))
    assert len({given(folder, f"{name}/tasks")["plan"] for name in ("ada", "ben", "cy")}) == 1
    for name in ("ada", "ben", "cy"):
        tasks = given(folder, f"{name}/tasks")["tasks"]
        shown: list[Any] = []
        while len(shown) < len(tasks):
            shown += given(folder, f"{name}/items/{len(shown) // 20}")
        assert len(shown) == len(tasks)
        for item in shown:
            assert (item["id"], item["facts"], item["why"]) == ("", [], None)
            assert [pane["name"] for pane in item["panes"]] == ["image 1", "image 2"]
            assert all((folder / pane["file"]).is_file() for pane in item["panes"])
    assert not list(folder.glob("data/*/rows"))


def test_the_same_command_goes_on_and_another_one_is_refused(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = planned(dataset, tmp_path / "r")
    whole = digests(folder)
    (folder / "ben.html").unlink()

    assert digests(planned(dataset, folder)) == whole
    with pytest.raises(SystemExit):
        planned(dataset, folder, "--sample", "9")
    assert "contains a different report (for eq-video)" in capsys.readouterr().err


def test_who_has_no_tasks_gets_no_page(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = planned(dataset, tmp_path / "r", "--overlap", "1", "--sample", "2")

    said = capsys.readouterr().out
    idle = re.findall(r"(\w+): no tasks", said)
    assert len(idle) == 1
    assert said.count(": 1 task, about 1 min") == 2
    pages = {"index", "ada", "ben", "cy"} - {*idle}
    assert {path.stem for path in folder.glob("*.html")} == pages
    assert not list(folder.glob(f"data/{idle[0]}"))
    index = (folder / "index.html").read_text()
    assert {name for name in ("ada", "ben", "cy") if f'"{name}.html"' in index} == pages - {"index"}
    assert "<td>no tasks</td><td></td>" in index


def test_a_second_round_goes_to_all_who_are_named(dataset: Path, tmp_path: Path) -> None:
    """Decisions do not say who voted, so that whoever is asked anew could get nothing."""
    decisions = tmp_path / "decisions.jsonl"
    decisions.write_text('{"id": "p/07", "decision": "unsure"}\n')
    options = ["--disagreed", str(decisions)]

    folder = planned(dataset, tmp_path / "all", *options)
    one = planned(dataset, tmp_path / "one", *options, "--overlap", "1")
    alone = planned(dataset, tmp_path / "alone", "--sample", "3", reviewers="cy")

    for name in ("ada", "ben", "cy"):
        assert given(folder, f"{name}/tasks")["tasks"] == [["p/07", False]]
    assert len(list(one.glob("data/*/tasks.js"))) == 1
    assert len(given(alone, "cy/tasks")["tasks"]) == 3


def test_every_plan_is_known_by_its_digest(dataset: Path, tmp_path: Path) -> None:
    """Votes are kept in the browser by it, so that no round finds those of another."""
    options: list[list[str]] = [[], ["--sample", "9"], ["--overlap", "1"], ["--sample", "8"]]
    plans = [
        given(planned(dataset, tmp_path / str(n), *more), "ada/tasks")["plan"]
        for n, more in enumerate(options)
    ]
    others = planned(dataset, tmp_path / "others", reviewers="ada eve cy")
    assert len({*plans, given(others, "ada/tasks")["plan"]}) == 5


def written(folder: Path, name: str, kind: Any, records: list[Any]) -> Path:
    """Writes a dataset that has samples and nothing else."""
    table = Table(name=kind.name, shards=1, schema=kind.schema, key=kind.key_of, row=kind.row)
    file = write_shard(table, 0, records, str(folder)).file
    about: dict[str, Any] = {"config": {}, "inputs": [], "versions": {}, "stages": {}}
    manifest = Manifest(dataset=name, mode="corrected", tables={"samples": [file]}, **about)
    (folder / "dataset.json").write_bytes(to_json(manifest))
    return folder


def refused(dataset: Path, protocol: str, output: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        planned(dataset, output, "--protocol", protocol)
    assert not output.exists()
    return " ".join(capsys.readouterr().err.split())


def test_protocols_are_refused_where_nobody_could_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without pictures no protocol of eqforge's fits; one of a user's own is never refused."""
    name = hashlib.sha256(picture(0)).hexdigest()
    caption = TrainingCaption(
        sample_id="a", caption_id="a", image="i.jpg", image_id=name, split="train",
        role="original", text="a cat", kind=None, generator=None,
    )  # fmt: skip
    texts = written(tmp_path / "texts", "training-captions", TRAINING_TABLE, [caption])
    pair = sample("p", 0, (picture(0), picture(1)), "test")
    unseen = write_pairs(tmp_path / "unseen", [pair], [])
    own = tmp_path / "own.toml"
    own.write_text('name = "own"\nquestion = "Is it English?"\n')

    decided = [name for name, each in protocols().items() if each.form == "decide"]
    for dataset, protocol in itertools.product((texts, unseen), decided):
        said = refused(dataset, protocol, tmp_path / "r", capsys)
        assert f"--protocol {protocol}: {dataset} contains no images for its items" in said
        assert "build it with --images FOLDER" in said
    planned(texts, tmp_path / "own", "--protocol", str(own))

    (item,) = units_of(open_dataset(str(texts)), "samples").make(["a"]).values()
    check_fits(protocols()["true-and-false"], [item], {name}, open_dataset(str(texts)))
    for protocol in ("eq-gebc-screening", "eq-sd-filter"):
        with pytest.raises(InputError, match="choose --protocol true-and-false, or your own"):
            check_fits(protocols()[protocol], [item], {name}, open_dataset(str(texts)))


def test_perturbations_are_shown_one_by_one_and_only_where_there_is_one(tmp_path: Path) -> None:
    some = [
        PerturbedCaption(
            sample_id=f"a/{name}", caption_id="a", image="i.jpg", image_id=None, split="test",
            perturbation=name, mode="corrected", version=1, caption="a cat",
            perturbed_caption=text, applied=True, words_changed=name != "colours",
            reason=None, spans=(), perturbed_spans=(),
        )
        for name, text in (("typos", "a act"), ("colours", "a  cat"), ("synonyms", "a kitty"))
    ]  # fmt: skip
    folder = written(tmp_path / "d", "retrieval-perturbations", PERTURBED_TABLE, some)
    dataset = open_dataset(str(folder))

    units = units_of(dataset, "samples")
    ids = units.ids
    items = units.make(ids)

    assert sorted(ids) == ["a/synonyms", "a/typos"]
    told = {name: [text.plain for text in item.texts] for name, item in items.items()}
    assert told == {"a/synonyms": ["a cat", "a kitty"], "a/typos": ["a cat", "a act"]}


def test_texts_to_train_on_are_shown_beside_their_originals(tmp_path: Path) -> None:
    """Each is judged by itself, and nothing is called true of the picture that is not."""
    texts: dict[Part, str] = {
        "original": "a cat",
        "hard_positive": "a kitty",
        "hard_negative": "a dog",
    }
    some = [
        TrainingCaption(
            sample_id=f"{caption}/{role}", caption_id=caption, image="i.jpg", image_id=None,
            split="train", role=role, text=text, kind=None, generator=None,
        )
        for caption in ("a", "b")
        for role, text in texts.items()
        if (caption, role) != ("b", "original")
    ]  # fmt: skip
    folder = written(tmp_path / "d", "training-captions", TRAINING_TABLE, some)

    items = units_of(open_dataset(str(folder)), "samples").make([each.sample_id for each in some])

    told = {
        name: [(text.role.replace("_", " "), text.plain, text.tone) for text in item.texts]
        for name, item in items.items()
    }
    original = ("original", "a cat", "true")
    assert told == {
        "a/original": [original],
        "a/hard_positive": [original, ("hard positive", "a kitty", "true")],
        "a/hard_negative": [original, ("hard negative", "a dog", "false")],
        "b/hard_positive": [("hard positive", "a kitty", "true")],
        "b/hard_negative": [("hard negative", "a dog", "false")],
    }


def test_planning_holds_what_is_chosen_and_not_the_dataset(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    of_pair = of_rows.of_pair

    def counted(row: Any) -> Any:
        made.append(row)
        return of_pair(row)

    monkeypatch.setattr(of_rows, "of_pair", counted)

    planned(dataset, tmp_path / "r", "--sample", "3")

    assert len(made) == 3


def test_votes_become_decisions_and_disagreement_the_next_task(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = planned(dataset, tmp_path / "plan", "--overlap", "2")
    bad = {f"p/{n:02d}" for n in (1, 4, 9)}
    files = [
        decided(
            folder, name, tmp_path / f"{name}.json", bad | ({"p/07"} if name == "ada" else set())
        )
        for name in ("ada", "ben", "cy")
    ]
    out = tmp_path / "decisions.jsonl"

    assert review.main(["import", str(dataset), *map(str, files), "--output", str(out)]) == 0

    said = capsys.readouterr().out
    verdicts = {each.id: each.decision for each in read_decisions(out)}
    seen = given(folder, "ada/tasks")["tasks"]
    split = {"p/07"} if any(item == "p/07" for item, _ in seen) else set()
    assert {item for item, what in verdicts.items() if what == "drop"} == bad
    assert {each.id for each in read_decisions(out) if each.votes.is_split} == split
    assert {item for item, what in verdicts.items() if what == "unsure"} == split
    assert len(verdicts) == 40
    assert "Krippendorff's alpha" in said
    told = " ".join(said.split())
    shares = r"\[\d+, \d+\], 1 of 1 repeats answered the same \[3, 100"
    assert re.search(rf"ada: .*, \d+% agreement with other reviewers {shares}", told)
    with pytest.raises(SystemExit):
        review.main(["import", str(dataset), *map(str, files), "--output", str(out)])
    assert "exists; add --overwrite" in capsys.readouterr().err
    if split:
        again = planned(dataset, tmp_path / "again", "--disagreed", str(out))
        assert {
            item for n in ("ada", "ben", "cy") for item, _ in given(again, f"{n}/tasks")["tasks"]
        } == split


def test_rounds_add_up_and_every_answer_is_kept(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of three keep what one drops: all three are asked again, and decide otherwise."""
    folder = planned(dataset, tmp_path / "plan", "--overlap", "3")
    bad = {"ada": {"p/01", "p/02"}, "ben": {"p/01"}, "cy": {"p/01"}}
    files = [decided(folder, name, tmp_path / f"{name}.json", some) for name, some in bad.items()]
    first, answers = tmp_path / "first.jsonl", tmp_path / "answers.jsonl"
    argv = ["import", str(dataset), *map(str, files), "--answers", str(answers)]
    assert review.main([*argv, "--output", str(first)]) == 0

    by_id = {each.id: each for each in read_decisions(first)}
    assert by_id["p/01"].votes == Tally(drop=3)
    assert (by_id["p/02"].decision, by_id["p/02"].votes) == ("keep", Tally(keep=2, drop=1))
    told = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(told) == sum(len(json.loads(file.read_text())["votes"]) for file in files)
    assert told[0] == {
        **{"item": "p/00", "reviewer": "ada", "answer": "keep", "reason": "", "note": ""},
        **{"seconds": 0.0, "is_repeat": False},
    }

    again = planned(dataset, tmp_path / "again", "--overlap", "3", "--disagreed", str(first))
    assert [item for item, _ in given(again, "ada/tasks")["tasks"]] == ["p/02"]
    files = [decided(again, name, tmp_path / f"{name}.json", {"p/02"}) for name in bad]
    second = tmp_path / "second.jsonl"
    argv = ["import", str(dataset), *map(str, files), "--output", str(second)]
    capsys.readouterr()
    assert review.main([*argv, "--earlier", str(first)]) == 0
    assert "second.jsonl: 40 decisions, 39 of them from an earlier round" in capsys.readouterr().out
    both = {each.id: each for each in read_decisions(second)}
    assert both == {**by_id, "p/02": both["p/02"]}
    assert (both["p/02"].decision, both["p/02"].votes) == ("drop", Tally(drop=3))

    first.write_text('{"id": "zebra", "decision": "keep"}\n')
    with pytest.raises(SystemExit):
        review.main([*argv, "--earlier", str(first), "--overwrite"])
    assert "'zebra' is not a sample" in capsys.readouterr().err


def test_what_somebody_left_open_is_asked_again(dataset: Path, tmp_path: Path) -> None:
    """One vote of two decides, and says so; the next round has it, and closes it."""
    folder = planned(dataset, tmp_path / "plan", reviewers="ada ben")
    files = [decided(folder, name, tmp_path / f"{name}.json", set()) for name in ("ada", "ben")]
    left = json.loads(files[1].read_text())
    open_id = next(vote["id"] for vote in left["votes"] if not vote["is_repeat"])
    left["votes"] = [vote for vote in left["votes"] if vote["id"] != open_id]
    files[1].write_text(json.dumps(left))
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    argv = ["import", str(dataset), *map(str, files)]

    assert review.main([*argv, "--output", str(first)]) == 0

    by_id = {each.id: each for each in read_decisions(first)}
    assert (by_id[open_id].who, by_id[open_id].asked) == ("majority of 1", 2)
    again = planned(dataset, tmp_path / "again", "--disagreed", str(first), reviewers="ada ben")
    assert given(again, "ben/tasks")["tasks"] == [[open_id, False]]
    for name in ("ada", "ben"):
        decided(again, name, tmp_path / f"{name}.json", set())
    assert review.main([*argv, "--earlier", str(first), "--output", str(second)]) == 0
    assert disagreed(read_decisions(second)) == ()


def test_what_a_later_round_is_unsure_of_stays_as_it_was() -> None:
    earlier = [Decision(id="a", decision="drop"), Decision(id="b", decision="keep")]
    later = [Decision(id="a", decision="unsure"), Decision(id="c", decision="unsure")]

    found = {each.id: each.decision for each in with_earlier(later, earlier)}

    assert found == {"a": "drop", "b": "keep", "c": "unsure"}
    split = Decision(id="d", decision="keep", votes=Tally(keep=2, drop=1))
    assert disagreed([*earlier, *later[1:], split]) == ("c", "d")


def test_intervals_of_each_reviewer_hold_what_the_error_rates_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two who err at rate e answer alike (1-e)^2 + e^2 of the time; so does one who is asked twice.

    Of 95% intervals about one in twenty misses.
    """
    monkeypatch.setattr(agreement_of_people, "RESAMPLES", 200)  # the alphas take long
    error = 0.2
    expected = (1 - error) ** 2 + error**2
    held, alike = [], []
    for seed in range(20):
        votes = simulated({f"{seed} {name}": error for name in ("ada", "ben", "cy")})
        for name, some in votes.items():
            again = list(answers(f"{name} again", error, ITEMS[:30]))
            some += [
                Vote(task=601 + n, id=item, answer=answer, is_repeat=True)  # type: ignore[arg-type]
                for n, (item, answer) in enumerate(again)
            ]
        found = reviewers_of(votes, dict.fromkeys(votes, 630))[0]
        held.append(found.others_interval[0] <= expected <= found.others_interval[1])
        alike.append(found.same_interval[0] <= expected <= found.same_interval[1])
        assert found.others is not None
        assert found.others_interval[0] < found.others < found.others_interval[1]
        assert found.others_interval[1] - found.others_interval[0] < 0.1
    assert np.mean(held) > 0.85
    assert np.mean(alike) > 0.85


def test_of_two_reviewers_each_has_the_alpha_of_both() -> None:
    """Krippendorff (2011), page 2: binary data, two observers, no missing data: 0.095."""
    data = {"meg": "0100000010", "owen": "1110010000"}
    votes = {
        name: [
            Vote(task=n, id=str(n), answer="drop" if value == "1" else "keep")
            for n, value in enumerate(values, start=1)
        ]
        for name, values in data.items()
    }

    both = agreement(first_votes(votes))

    assert both.alpha == pytest.approx(0.095, abs=0.0005)
    for each in reviewers_of(votes, {"meg": 10, "owen": 10}):
        assert each.alpha == pytest.approx(both.alpha)
        assert each.alpha_interval == pytest.approx(both.interval)


def test_the_interval_of_repeats_is_the_exact_one() -> None:
    """Clopper and Pearson's of 8 of 10: 0.4439 to 0.9748."""
    votes = {
        "ada": [
            Vote(task=n + 1, id=str(n % 10), answer="keep" if n < 18 else "drop", is_repeat=n > 9)
            for n in range(20)
        ]
    }
    (ada,) = reviewers_of(votes, {"ada": 20})

    assert (ada.same, ada.repeats) == (8, 10)
    assert ada.same_interval == pytest.approx((0.4439, 0.9748), abs=1e-4)
    assert ada.others is None
    assert ada.alpha is None
    assert all(np.isnan(ada.others_interval))


def test_a_protocol_of_ones_own_is_a_small_file(dataset: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'name = "own"\nquestion = "Is it <b>good</b>?"\nreasons = ["no"]\nseconds = 3\n'
    )

    folder = planned(dataset, tmp_path / "r", "--protocol", str(path), "--sample", "6")

    tasks = [given(folder, f"{name}/tasks") for name in ("ada", "ben", "cy")]
    assert [each["protocol"] for each in tasks] == ["own"] * 3
    assert tasks[0]["reasons"] == ["no"]
    assert len({item for each in tasks for item, _ in each["tasks"]}) == 6
    page = (folder / "ada.html").read_text()
    assert "Is it &lt;b&gt;good&lt;/b&gt;?" in page


def test_people_vote_with_keys_and_the_build_drops_what_they_dropped(
    browser: Any, demo_output: Path, tmp_path: Path
) -> None:
    """From the plan to the rejects: vote, reload, undo, save, import, build again."""
    dataset, own = demo_output / "hard-positives", tmp_path / "own.toml"
    own.write_text('name = "own"\nquestion = "Is it so?"\nreasons = ["odd", "two are the same"]\n')
    argv = ["--protocol", str(own), "--reviewers", "ada", "--overlap", "1", "--sample", "8"]
    folder = tmp_path / "plan"
    assert review.main(["plan", str(dataset), *argv, "--output", str(folder)]) == 0
    context = browser.new_context(accept_downloads=True)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.goto(f"file://{folder}/index.html")
    minutes = page.text_content("tbody td:last-child")
    page.get_by_role("link", name="ada").click()
    total = len(given(folder, "ada/tasks")["tasks"])

    def count(number: int) -> None:
        start = f"{number} of {total} answered" if number < total else f"all {total} answered"
        page.wait_for_function(
            "text => document.getElementById('count')?.textContent.startsWith(text)", arg=start
        )
        page.wait_for_selector("#single[aria-busy=false]")

    count(0)
    shows = page.text_content("#count") or ""
    assert shows == f"0 of {total} answered, {minutes} left" == "0 of 8 answered, about 2 min left"
    page.keyboard.down("k")
    for _ in range(3):  # a key that is held
        page.wait_for_selector("#single[aria-busy=false]")
        page.keyboard.down("k")
    page.keyboard.up("k")
    count(1)
    page.keyboard.press("d")
    page.keyboard.press("2")
    count(2)
    page.keyboard.press("u")
    count(3)
    page.keyboard.press("z")
    count(2)
    page.reload()
    count(2)
    page.keyboard.press("n")
    page.keyboard.type("kd")  # a note, and no votes
    page.keyboard.press("Enter")
    page.keyboard.press("z")
    count(1)
    page.reload()  # the note is of the third task, and waits for its answer
    count(1)
    assert page.input_value("#note") == ""
    page.keyboard.press("d")
    page.keyboard.press("2")
    count(2)
    assert page.input_value("#note") == "kd"
    page.keyboard.press("k")
    count(3)
    page.keyboard.press("z")
    count(2)
    page.reload()  # so does the note of an answer that was undone
    count(2)
    assert page.input_value("#note") == "kd"
    for number in range(3, total + 1):
        page.keyboard.press("k")
        count(number)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save").click()
    votes = tmp_path / download.value.suggested_filename
    download.value.save_as(votes)
    # Another round of as many tasks finds none of these votes; what was not shown gets no answer.
    second = tmp_path / "second"
    argv[3:] = ["ada,ben", "--overlap", "1", "--sample", "16"]
    assert review.main(["plan", str(dataset), *argv, "--output", str(second)]) == 0
    assert len(given(second, "ada/tasks")["tasks"]) == total
    waiting: list[Any] = []
    page.route("**/data/ada/items/0.js", lambda route: waiting.append(route))
    page.goto(f"file://{second}/ada.html", wait_until="domcontentloaded")
    page.wait_for_function("() => document.getElementById('count').textContent.startsWith('0 of ')")
    page.keyboard.press("k")
    assert page.get_attribute("#single", "aria-busy") == "true"
    page.wait_for_timeout(50)
    waiting[0].continue_()
    page.wait_for_selector("#single[aria-busy=false]")
    assert (page.text_content("#count") or "").startswith(f"0 of {total}")
    context.close()
    assert wrong == []

    told = json.loads(votes.read_text())
    assert told["overlap"] == 1
    assert [vote["answer"] for vote in told["votes"]] == ["keep", "drop", *["keep"] * (total - 2)]
    assert told["votes"][1]["reason"] == "two are the same"
    assert told["votes"][2]["note"] == "kd"
    assert told["plan"] == given(folder, "ada/tasks")["plan"]
    assert told["sha256"] == read_manifest(str(dataset))[1]
    decisions = tmp_path / "decisions.jsonl"
    assert review.main(["import", str(dataset), str(votes), "--output", str(decisions)]) == 0
    dropped = [each.id for each in read_decisions(decisions) if each.decision == "drop"]
    assert dropped == [told["votes"][1]["id"]]

    from tests.builds import rejected, rows

    workspace = demo_output / "workspace"
    (captions,) = workspace.rglob("captions_val2017.json")
    images = next(path.parent for path in workspace.rglob("1.jpg"))
    build = ["build", "hard-positives", "--captions", captions, "--images", images]
    out = tmp_path / "again"
    assert main([*map(str, [*build, "--decisions", decisions, "--output", out])]) == 0
    assert rejected(out, "human") == dropped
    names = {row["sample_id"] for row in rows(dataset, "samples")}
    assert {row["sample_id"] for row in rows(out, "samples")} == names - set(dropped)
