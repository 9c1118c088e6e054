"""Results of others' programs: BiVLC's rows, CLIP_benchmark's sums, own tasks of lmms-eval."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eqforge import cli
from eqforge.evaluation.tables.command import main as command
from eqforge.evaluation.tasks.harnesses import shares_right
from eqforge.schemas.dataset.reader import open_dataset
from tests.evaluation.harnesses.test_table import measured, values
from tests.made_datasets import pair_tables, write_pairs
from tests.statuses import status_of

main = status_of(command)
FLAGS = ("text_score_i0", "text_score_i1", "image_score_c0", "image_score_c1")


def write_rows(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return path


def bivlc_row(caption: str, negative: str, *won: bool) -> dict[str, str]:
    text, image = won[0] and won[1], won[2] and won[3]
    scores = dict(zip(FLAGS, won, strict=True)) | {"text_score": text, "image_score": image}
    row = {"image": "<PIL image>", "caption": caption, "negative_caption": negative}
    row |= {"negative_image": "<PIL image>", "type": "add", "subtype": "obj"}
    return row | {
        name: str(won) for name, won in (scores | {"group_score": text and image}).items()
    }


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pairs of two videos, of captions that no other has."""
    tables = pair_tables(2)
    tables["samples"] = [
        row | {"caption_0": f"caption {number}", "caption_1": f"négatif {number}"}
        for number, row in enumerate(tables["samples"][4:8])
    ]
    return write_pairs(tmp_path_factory.mktemp("pairs") / "d", tables)


def bivlc_rows() -> list[dict[str, str]]:
    won = [(True,) * 4, (True, True, True, False), (True, False, True, True), (False,) * 4]
    return [bivlc_row(f"caption {n}", f"négatif {n}", *won[n]) for n in (2, 0, 3, 1)]


def test_bivlcs_rows_are_joined_by_their_captions(pairs: Path, tmp_path: Path) -> None:
    numbers = measured(tmp_path, pairs, write_rows(tmp_path / "r.csv", bivlc_rows()))
    assert values(numbers) == {"text": 0.5, "image": 0.5, "group": 0.25}
    row = numbers["all", "group"]
    assert (row["scored"], row["missing"], row["clusters"]) == ("4", "0", "2")


def test_of_each_sample_the_share_is_told_that_is_right(pairs: Path, tmp_path: Path) -> None:
    dataset = open_dataset(str(pairs))
    numbers = {row["sample_id"]: int(row["caption_0"][-1]) for row in dataset.rows("samples")}

    shares = shares_right(dataset, write_rows(tmp_path / "r.csv", bivlc_rows()[:3]))

    assert {numbers[name]: share for name, share in shares.items()} == {2: 0.5, 0: 1, 3: 0}
    name = min(numbers)
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(own_lines({name: [1, 1, 0, 1]})))
    assert shares_right(dataset, path) == {name: 0.75}


def _other_score(rows: list[dict[str, str]]) -> None:
    rows[0]["group_score"] = "True"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda rows: rows.append(rows[0]),
            "line 6: the caption 'caption 2' appears more often than",
        ),
        (lambda rows: rows.pop(), "answers are missing for 1 of 4 samples"),
        (
            lambda rows: rows[0].update(caption="strange"),
            "the dataset does not contain 1 of the 4 captions",
        ),
        (lambda rows: rows[0].update(text_score="0.5"), "expected True or False, found '0.5'"),
        (_other_score, "line 2: group_score is True, but text_score is False"),
    ],
)
def test_rows_that_do_not_fit_are_errors(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Any, message: str
) -> None:
    rows = bivlc_rows()
    change(rows)
    assert main([str(pairs), str(write_rows(tmp_path / "r.csv", rows))]) == 2
    assert message in capsys.readouterr().err


def test_pairs_with_the_same_captions_get_their_rows_by_kind_and_then_in_order(
    tmp_path: Path,
) -> None:
    """All four published files hold one pair of captions twice."""
    pair = {"caption_0": "caption 2", "caption_1": "négatif 2", "image_0": "0.png"}
    samples = [
        pair | {"id": str(n), "image_1": f"{n + 1}.png", "kind": kind}
        for n, kind in enumerate(("add_obj", "swap_obj", "add_obj"))
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, samples)))
    for n in range(4):
        Image.new("RGB", (8, 8), (n, 0, 0)).save(tmp_path / f"{n}.png")
    dataset = tmp_path / "d"
    source = [str(tmp_path / "pairs.jsonl"), "--images", str(tmp_path)]
    assert cli.main(["import", "own-pairs", *source, "--output", str(dataset)]) == 0
    rows = [bivlc_row("caption 2", "négatif 2", *won) for won in ((False,) * 4, (True,) * 4) * 2]
    rows = rows[:3]
    rows[2]["type"] = "swap"
    shares = shares_right(open_dataset(str(dataset)), write_rows(tmp_path / "r.csv", rows))
    assert {name[-1]: share for name, share in shares.items()} == {"0": 0, "2": 1, "1": 0}


def test_bivlcs_published_rows_give_its_shares(data_folder: Path, tmp_path: Path) -> None:
    path = data_folder / "published" / "bivlc" / "results_ViT-B-32_first500.csv"
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    (like, *_) = pair_tables(1)["samples"]
    samples = [
        like
        | {"sample_id": f"b/{n:03d}", "source_id": f"s{n}"}
        | {"caption_0": row["caption"], "caption_1": row["negative_caption"]}
        for n, row in enumerate(rows)
    ]
    dataset = write_pairs(tmp_path / "d", {**pair_tables(1), "samples": samples[::-1]})
    numbers = measured(tmp_path, dataset, path)
    assert values(numbers) == {"text": 0.712, "image": 0.456, "group": 0.406}


def write_sums(path: Path, task: str = "image_caption_selection", **metrics: float) -> Path:
    about = {"dataset": "d", "model": "ViT-B-32", "pretrained": "openai", "language": "en"}
    path.write_text(json.dumps(about | {"task": task, "metrics": metrics}))
    return path


def test_sums_of_clip_benchmark_are_shown_without_intervals(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_sums(tmp_path / "c.json", image_acc=0.5, text_acc=0.75, acc=0.25)
    numbers = measured(tmp_path, pairs, path)
    assert values(numbers) == {"text": 0.75, "image": 0.5, "group": 0.25}
    assert numbers["all", "text"]["low"] in ("", "nan")
    assert "writes no results per sample" in " ".join(capsys.readouterr().out.split())


def test_sums_of_another_dataset_or_task_are_refused(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_sums(tmp_path / "c.json", image_acc=0.5, text_acc=0.7, acc=0.25)
    assert main([str(pairs), str(path)]) == 2
    assert "text_acc is 0.7. A mean over 4 samples cannot" in capsys.readouterr().err
    path = write_sums(tmp_path / "c.json", "zeroshot_retrieval", **{"image_retrieval_recall@5": 1})
    assert main([str(pairs), str(path)]) == 2
    assert "pass results of --task image_caption_selection" in capsys.readouterr().err


def own_lines(scores: dict[str, list[int]]) -> list[str]:
    lines = [(key, score) for key, said in scores.items() for score in said]
    return [
        json.dumps({"doc_id": n, "filtered_resps": "A", "acc": {"score": float(s), "id": key}})
        for n, (key, s) in enumerate(lines)
    ]


def test_a_task_of_ones_own_is_judged_by_its_scores(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [f"made/{key}" for key in ("v000/1-3", "v000/2-3", "v001/0-1", "v001/0-2")]
    scores = dict(zip(keys, ([1, 1], [1, 0], [0, 0], [1, 1]), strict=True))
    (tmp_path / "m.jsonl").write_text("\n".join(reversed(own_lines(scores))))
    assert values(measured(tmp_path, pairs, tmp_path / "m.jsonl")) == {
        "accuracy": 0.625,
        "group": 0.5,
    }
    for lines, message in (
        (
            own_lines(scores)[1:],
            "lines per sample vary from 1 to 2, so some questions are missing",
        ),
        (own_lines(scores)[2:], "answers are missing for 1 of 4 samples"),
        ([*own_lines(scores), own_lines(scores)[3]], "the doc_id '3' appears twice"),
        (own_lines({"strange": [1]}), "the dataset does not contain 1 of the 1 samples"),
    ):
        (tmp_path / "m.jsonl").write_text("\n".join(lines))
        assert main([str(pairs), str(tmp_path / "m.jsonl")]) == 2
        assert message in capsys.readouterr().err


def test_a_published_log_gives_what_the_harness_printed(data_folder: Path, tmp_path: Path) -> None:
    folder = data_folder / "published" / "lmms_eval"
    (log,) = folder.glob("*_samples_*.jsonl")
    (printed,) = folder.glob("*_results.json")
    lines = [json.loads(line)["acc"] for line in log.read_text().splitlines()]
    (like, *_) = pair_tables(1)["samples"]
    samples = [
        like | {"sample_id": key, "source_id": source}
        for key, source in {(line["id"], line["source_id"]) for line in lines}
    ]
    dataset = write_pairs(tmp_path / "d", {**pair_tables(1), "samples": samples})
    theirs = json.loads(printed.read_text())["results"]["eqforge_eq_video"]
    assert values(measured(tmp_path, dataset, log)) == {
        "accuracy": theirs["acc,none"],
        "group": theirs["group,none"],
    }
