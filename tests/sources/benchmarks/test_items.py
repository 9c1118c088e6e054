"""Every form of a benchmark is read: all its rows, in any order, and mistakes are named."""

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.sources.benchmarks.form import NOT_CONFIRMED, BenchmarkItem
from eqforge.sources.benchmarks.items import NAMED, parse_columns, read_items
from eqforge.sources.benchmarks.published import FORMS
from tests.published import CAPTION, COLUMNS, FOIL, ITEMS, REWORDED, SOURCES

DATA = Path(os.environ.get("EQFORGE_TEST_DATA", ""))


def items_of(benchmark: str, source: Path) -> list[BenchmarkItem]:
    (form, *_) = FORMS[benchmark]
    known = [*sorted(form.fields), *form.optional]
    columns = parse_columns(COLUMNS[benchmark], known) if benchmark in COLUMNS else NAMED
    return list(read_items(benchmark, source, columns))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_each_is_read_whole(benchmark: str, tmp_path: Path) -> None:
    found = items_of(benchmark, SOURCES[benchmark](tmp_path))
    assert len(found) == ITEMS[benchmark]
    assert len({item.item_id for item in found}) == len(found)
    assert all(item.item_id.startswith(f"{benchmark}/") for item in found)
    again = [msgspec.json.decode(msgspec.json.encode(i), type=BenchmarkItem) for i in found]
    assert again == found


def test_what_is_read(tmp_path: Path) -> None:
    def one(benchmark: str, number: int = 0) -> BenchmarkItem:
        folder = tmp_path / f"{benchmark}-{number}"
        folder.mkdir(exist_ok=True)
        return items_of(benchmark, SOURCES[benchmark](folder))[number]

    assert one("winoground", 1) == BenchmarkItem(
        item_id="winoground/7",
        kind="Object",
        images=("a7.png", "b7.png"),
        texts=(f"{CAPTION} 7", f"{FOIL} 7"),
    )
    genome = one("eqben")
    assert (genome.kind, genome.source_id) == ("eqbenag", "v1")
    assert genome.texts == (CAPTION, f"{FOIL} 1")
    said = {"caption0": [CAPTION, ""], "nested_under": "v1/chair", "source_order": 0}
    assert json.loads(genome.annotation) == said
    assert one("eqben", 2).images == ("eqbenyoucook2/v2/0.npy", "eqbenyoucook2/v2/1.npy")
    assert one("valse").item_id == "valse/existence/x_1"
    assert one("valse", 1).refusal == NOT_CONFIRMED
    assert one("sugar-crepe").item_id == "sugar-crepe/add_att/0"
    assert one("sugar-crepe-plus").texts == (CAPTION, REWORDED)
    assert one("aro-relation").box == CornerBox(x0=1, y0=2, x1=31, y1=6)
    assert one("aro-attribution").kind == "red_wet"
    assert [one("aro-order", n).negatives for n in (0, 1)] == [(FOIL,), (REWORDED,)]
    swig = one("vl-checklist", 2)
    assert (swig.kind, swig.texts, swig.negatives) == ("Relation/swig_action", ("b",), ("d",))
    assert one("conme").images == ("3.jpg",)
    assert one("mmvp", 1).negatives == ("Open", "Not (yet) open")
    assert one("mmvp", 1).answer == "Not (yet) open"
    assert one("mmvp-vlm").images == tuple(
        f"MLLM_VLM Images/State and Condition/{n}.jpg" for n in (1, 2)
    )
    assert one("coco-counterfactuals").images == ("a1.jpg", "b1.jpg")
    assert one("negclip", 1).negatives == ('it "is"',)
    assert one("negclip").split == "train"
    assert one("replace-swap").texts == (CAPTION, REWORDED)
    assert one("own-pairs").images == ("a.png", "b.png")
    assert one("own-questions").group == "own-questions/1"
    (cell, _) = one("vismin").cells
    assert cell is not None
    assert (cell.name, cell.column, cell.row) == ("0.png", "image_0", 0)


@pytest.mark.parametrize("benchmark", ["sugar-crepe", "aro-relation", "eqben", "natural-bench"])
def test_ids_do_not_depend_on_the_order(benchmark: str, tmp_path: Path) -> None:
    folder = SOURCES[benchmark](tmp_path)
    found = items_of(benchmark, folder)
    for path in folder.rglob("*.json"):
        value = json.loads(path.read_text())
        if isinstance(value, dict):
            shuffled: Any = dict(reversed(value.items()))
        elif benchmark == "natural-bench":  # groups stay together
            shuffled = value[4:] + value[:4]
        else:
            shuffled = value[::-1]
        path.write_text(json.dumps(shuffled))
    again = items_of(benchmark, folder)
    assert {i.item_id: i for i in again} == {i.item_id: i for i in found}


def test_pairs_of_a_subset_keep_their_order_over_files(tmp_path: Path) -> None:
    """A file of all has pairs of all subsets; others of a subset may be files of their own."""

    def pair(subset: str, number: int) -> dict[str, str]:
        images = {f"image{n}": f"{subset}/{number}_{n}.png" for n in (0, 1)}
        return images | {"caption0": "a", "caption1": "b"}

    mixed = [pair("eqbensd", 3), pair("eqbenag", 2), pair("eqbensd", 1)]
    (tmp_path / "a.json").write_text(json.dumps(mixed))
    (tmp_path / "b.json").write_text(json.dumps([pair("eqbensd", 0) | {"source_order": "own"}]))
    found = list(read_items("eqben", tmp_path))
    places = [(item.images[0], json.loads(item.annotation)) for item in found]
    assert places == [
        ("eqbensd/3_0.png", {"source_order": 0}),
        ("eqbenag/2_0.png", {"source_order": 0}),
        ("eqbensd/1_0.png", {"source_order": 1}),
        ("eqbensd/0_0.png", {"source_order": 2, "own source_order": "own"}),
    ]


def test_equal_records_are_kept_and_told_apart(tmp_path: Path) -> None:
    records = [["a.jpg", {"POS": [CAPTION, "x"], "NEG": [FOIL, "y"]}]] * 3
    path = tmp_path / "color.json"
    path.write_text(json.dumps(records))
    found = list(read_items("vl-checklist", path))
    assert len({item.item_id for item in found}) == 6
    assert Counter(item.group for item in found) == dict.fromkeys({i.group for i in found}, 2)


def test_an_id_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    for name in ("test", "train"):
        (tmp_path / f"{name}.csv").write_text(f"id,caption,hard_negative\n1,{name},b\n")
    with pytest.raises(
        InputError, match=r"train\.csv: line 2: .* test\.csv: line 2.*--columns id="
    ):
        list(read_items("own-foils", tmp_path))


SUGAR = '[{"filename": "a", "caption": "b", "negative_caption": "c"}]'
EQBEN = '[{"image0": "a", "caption0": [], "image1": "b", "caption1": "c"}]'
ARO = '[{"image_path": "", "true_caption": "", "false_caption": ""}]'
STATEMENTS = "Question ID,Type,Statement\n1,a,b\n3,a,b\n"
QUESTION = "Index,Question,Options,Correct Answer\n1,q,(a) x,(c)\n"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 57569\n"
CODE = "title\tfilepath\tneg_caption\nA\tb\t__import__('os')\n"


@pytest.mark.parametrize(
    ("benchmark", "name", "content", "message"),
    [
        ("winoground", "x.json", SUGAR, "this looks like a file for `eqforge import sugar-crepe`"),
        ("valse", "x.json", '[{"foil": "a", "captions": ""}]', "found only 'captions' and 'foil'$"),
        ("valse", "x.json", "[]", "contains no records"),
        ("natural-bench", "x.json", '[["q", "i", "a", "yes_no"]]', "four records per group"),
        (
            "mmvp-vlm",
            "x.csv",
            STATEMENTS,
            "1 needs a statement 2 with the same 'Type'",
        ),
        ("mmvp", "x.csv", QUESTION, "one of the options"),
        ("negclip", "x.tsv", CODE, "a list of strings"),
        (
            "vl-checklist",
            "x.json",
            '[["a", {"POS": ["a"], "NEG": []}]]',
            "equal numbers of POS and NEG",
        ),
        ("eqben", "x.json", EQBEN, "a caption"),
        ("own-foils", "x.txt", "a", "expected a file that ends in"),
        ("own-foils", "x.zip", "a", "Unpack it yourself, and pass the file or folder inside"),
        ("own-foils", "x.json", "", "x.json is empty"),
        ("own-foils", "x.json", POINTER, "x.json is a Git LFS pointer"),
        (
            "own-foils",
            "x.csv",
            "text,hard_negative\na,b\n",
            "map them with --columns caption=YOURS",
        ),
        ("aro-order", "x.json", '[{"image_path": "", "caption_options": [""]}]', "a true caption"),
        ("replace-swap", "x.json", ARO, "not in a folder named 'data' or 'swapped_data'"),
    ],
)
def test_mistakes_are_named(
    benchmark: str, name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        list(read_items(benchmark, path))


def test_counterparts_are_compared(tmp_path: Path) -> None:
    SOURCES["replace-swap"](tmp_path)
    path = tmp_path / "swapped_data" / "visual_genome.json"
    records = json.loads(path.read_text())
    path.write_text(json.dumps([records[0] | {"false_caption": "another"}]))
    with pytest.raises(InputError, match="as in data"):
        list(read_items("replace-swap", tmp_path))
    path.write_text("[]")
    with pytest.raises(InputError, match="1 record in the folder 'data', but 0 in 'swapped_data'"):
        list(read_items("replace-swap", tmp_path))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("caption",), "expected FIELD=COLUMN"),
        (("captoin=a",), "unknown field 'captoin'"),
        (("caption=a", "caption=b"), "'caption' appears twice"),
        (("caption=a", "image=a"), "'a' appears twice"),
    ],
)
def test_columns_are_checked(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_columns(texts, ["caption", "hard_negative", "image"])


@pytest.mark.skipif(not DATA.name, reason="EQFORGE_TEST_DATA names no folder of real data")
@pytest.mark.parametrize(
    ("benchmark", "source", "rows", "refused"),
    [
        ("valse", "published/valse", {"existence": 534, "actant-swap": 1042, "foil-it": 1000}, 179),
        ("sugar-crepe", "published/sugarcrepe", {"swap_obj": 245, "swap_att": 666}, 0),
        ("sugar-crepe-plus", "published/sugarcrepe_pp", {"swap_obj": 245}, 0),
        ("natural-bench", "published/naturalbench", {"yes_no": 3372, "mcq": 428}, 0),
    ],
)
def test_published_counts(benchmark: str, source: str, rows: dict[str, int], refused: int) -> None:
    found = list(read_items(benchmark, DATA / source))
    assert Counter(item.kind for item in found) == rows
    assert sum(bool(item.refusal) for item in found) == refused


@pytest.mark.skipif(not DATA.name, reason="EQFORGE_TEST_DATA names no folder of real data")
def test_the_checklist_s_published_counts() -> None:
    """Counted without the reader, too; some records have several captions."""
    source = DATA / "vl_checklist/data"
    expected: Counter[str] = Counter()
    for path in source.rglob("*.json"):
        kind = path.relative_to(source).with_suffix("").as_posix()
        expected[kind] += sum(len(texts["POS"]) for _, texts in json.loads(path.read_bytes()))
    kinds: Counter[str] = Counter()
    groups, ids = set(), set()
    for item in read_items("vl-checklist", source):
        kinds[item.kind] += 1
        groups.add(item.group)
        ids.add(item.item_id)
    assert kinds == expected
    assert len(ids) == kinds.total() == 151_228
    assert len(groups) == 151_210
    assert len(+kinds) == 16


@pytest.mark.skipif(not DATA.name, reason="EQFORGE_TEST_DATA names no folder of real data")
def test_published_files_that_are_parts(tmp_path: Path) -> None:
    candidates = DATA / "published/bivlc/BiVLC_negative_imgs_first500.csv"
    found = list(read_items("bivlc", candidates))
    assert len(found) == 2_000
    assert len({item.source_id for item in found}) == 500
    lines = (DATA / "published/negclip/valid_neg_clip_first300.tsv").read_text().splitlines()
    random.Random(0).shuffle(rest := lines[1:])
    shuffled = tmp_path / "valid_neg_clip.tsv"
    shuffled.write_text("\n".join([lines[0], *rest]))
    both = (DATA / "published/negclip/valid_neg_clip_first300.tsv", shuffled)
    items = [{i.texts + i.negatives for i in read_items("negclip", path)} for path in both]
    assert items[0] == items[1]
    assert len(list(read_items("negclip", both[0]))) == 449


def test_a_copy_does_not_take_the_id_of_another_record(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    row = {"id": "10", "caption": CAPTION, "hard_negative": FOIL}
    records = [row, row, row | {"id": "10-2"}]
    for turn in range(6):
        random.Random(turn).shuffle(records)
        path.write_text(json.dumps(records))
        with pytest.raises(InputError, match="10-2"):
            list(read_items("own-foils", path))


@pytest.mark.parametrize("text", [CAPTION, "كلب يعض رجلا", "狗咬人", "e\u0301 a\u0308"])
def test_ids_of_one_s_own_do_not_follow_the_file(text: str, tmp_path: Path) -> None:
    records = [{"caption": text, "hard_negative": foil} for foil in ("a", "b", "a")]
    found = []
    for name, order in (("x", records), ("y", records[::-1]), ("深", records[1:] + records[:1])):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(order))
        found.append({item.item_id: item for item in read_items("own-foils", path)})
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 3


def test_a_line_longer_than_any_record_is_refused_with_its_number(tmp_path: Path) -> None:
    """Both files hold good rows, one of them with a caption of 17 MB."""
    row = {"id": "1", "image": "1.jpg", "caption": CAPTION, "hard_negative": FOIL}
    rows = [row, row | {"id": "2", "caption": "a" * (17 << 20)}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (tmp_path / "a.csv").write_text(
        "".join(",".join(each) + "\n" for each in ([*row], *(each.values() for each in rows)))
    )

    for name, line in (("a.jsonl", 2), ("a.csv", 3)):
        with pytest.raises(InputError, match=rf"{name}: line {line} has more than 16,777,216"):
            list(read_items("own-foils", tmp_path / name))


def test_reading_stops_at_the_first_bad_record_or_after_a_hundred(tmp_path: Path) -> None:
    """The last line is no UTF-8, which is said where the file is read to its end."""
    (tmp_path / "a.jsonl").write_bytes(b'{"id": [1\n' * 4_000 + b"\xff")

    for share in (0.0, 0.5):
        with pytest.raises(InputError, match=r"a\.jsonl: line 1: not valid JSON"):
            list(read_items("own-foils", tmp_path / "a.jsonl", NAMED, share))
