"""No benchmark's files are taken for another's, and the message says whose they are."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.sources.benchmarks.items import SUFFIXES, parse_columns, read_items
from tests.published import CAPTION, FOIL, SOURCES

Files = Mapping[str, list[Path]]

SAME: Final = {("coco-counterfactuals", "own-pairs")}
"""COCO-Counterfactuals has the columns of one's own pairs, and no other."""
NOT_RECORDS: Final = "corpus.json"
RENAMED: Final = "own-pairs"
"""Its columns have to be named; as they are, they are no form's."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """By benchmark the folder of its files, and the first of them alone."""
    root = tmp_path_factory.mktemp("made")
    found = {}
    for benchmark, write in SOURCES.items():
        (root / benchmark).mkdir()
        write(root / benchmark)
        paths = sorted(path for path in (root / benchmark).rglob("*") if path.suffix in SUFFIXES)
        found[benchmark] = [root / benchmark, *[p for p in paths if p.name != NOT_RECORDS][:1]]
    return found


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_other_benchmark_s_files_are_refused(benchmark: str, files: Files) -> None:
    for other, paths in files.items():
        if benchmark == other or (other, benchmark) in SAME:
            continue
        for path in paths:
            with pytest.raises(InputError) as raised:
                list(read_items(benchmark, path))
            named = re.findall(r"`eqforge import ([\w-]+)`", str(raised.value))
            assert named, raised.value
            assert other in named or other == RENAMED, raised.value


def test_columns_of_one_s_own_that_are_winoground_s(tmp_path: Path) -> None:
    pair = {"image_0": "a.png", "image_1": "b.png", "caption_0": CAPTION, "caption_1": FOIL}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([pair | {"tag": "Object"}]))
    with pytest.raises(InputError, match=r"also has tag, .* --columns kind=tag"):
        list(read_items("own-pairs", path))
    known = ["kind", *pair]
    (found,) = read_items("own-pairs", path, parse_columns(["kind=tag"], known))
    assert found.kind == "Object"


def test_what_holds_the_records_is_looked_into(tmp_path: Path) -> None:
    pair = {"image0": "k/a.png", "image1": "k/b.png", "caption0": [CAPTION], "caption1": [FOIL]}
    path = tmp_path / "ag.json"
    path.write_text(json.dumps({"video": {"chair": [pair]}}))
    with pytest.raises(InputError, match="this looks like a file for `eqforge import eqben`"):
        list(read_items("winoground", path))
    said = r"found 'ag\.json'\. The first record of ag\.json contains 'chair'; .*import eqben`"
    with pytest.raises(InputError, match=said):
        list(read_items("winoground", tmp_path))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": []}', "[[[[[[[]]]]]]]", "3", '"text"'])
def test_nothing_like_it_is_refused_without_a_hint(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    for source in (tmp_path, tmp_path / "x.json"):
        for benchmark in BENCHMARKS:
            with pytest.raises(InputError) as raised:
                list(read_items(benchmark, source))
            assert "eqforge import" not in str(raised.value)


def refusal_of(path: Path, content: str, benchmark: str = "own-pairs") -> str:
    path.write_text(content)
    with pytest.raises(InputError) as raised:
        list(read_items(benchmark, path))
    return str(raised.value)


def test_fields_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    said = refusal_of(tmp_path / "x.json", json.dumps([{f"field{n:02}": 1 for n in range(15)}]))
    assert "found only 'field00', 'field01', " in said
    assert "'field11' and 3 more" in said


def test_fields_of_similar_names_have_a_nearest_form(tmp_path: Path) -> None:
    record = {"imageX": 1, "captionZ": "a", "neg_capt": "b"}
    said = refusal_of(tmp_path / "x.json", json.dumps([record]))
    assert "the closest match is `eqforge import sugar-crepe`" in said
    path = tmp_path / "x.json"
    said = refusal_of(path, json.dumps([{"Image 0": "a", "IMAGE-1": "b"}]), "own-foils")
    assert "the closest matches are " in said
    assert "`eqforge import own-pairs`" in said
    said = refusal_of(path, json.dumps([{"Image 0": "a", "IMAGE-1": "b"}]), "own-pairs")
    assert "own-pairs" not in said  # which is what was asked for
    assert "eqforge import" not in refusal_of(tmp_path / "x.json", '[{"captionZ": "a"}]')


def test_arrays_of_four_texts_are_naturalbench_only_with_its_kinds(tmp_path: Path) -> None:
    """COLA has two images and their captions in such an array."""
    path = tmp_path / "x.json"
    cola = json.dumps([["a.jpg", "a tall giraffe", "b.jpg", "a small giraffe"]])
    assert "eqforge import" not in refusal_of(path, cola)
    assert "a kind (yes_no or mcq)" in refusal_of(path, cola, "natural-bench")
    natural = json.dumps([["Is it tall?", "a.jpg", "Yes", "yes_no"]])
    assert "looks like a file for `eqforge import natural-bench`" in refusal_of(path, natural)


def test_a_key_of_answers_is_told_to_be_one(tmp_path: Path) -> None:
    content = "id,Text_Q0,Text_Q1,Image_Q0,Image_Q1,category\n0,A,B,First,Second,object\n"
    for benchmark in ("vismin", "own-pairs", "winoground"):
        said = refusal_of(tmp_path / "vqa_solution.csv", content, benchmark)
        assert "This is VisMin's vqa_solution.csv, which contains no captions" in said
        assert said.endswith("to `eqforge import vismin`.")
