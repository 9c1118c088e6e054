import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.caption_lint import count_clip_tokens
from eqforge.generators.text.lints.command import main as command
from eqforge.generators.text.lints.lint import KINDS, lint_records
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.labelled_captions import LabelledCaptions
from eqforge.sources.text_pairs import TextPair
from tests.cases import cases_of
from tests.statuses import status_of

cases = cases_of(__file__)

main = status_of(command)


def _pair(
    positive: str,
    negative: str,
    hard_positive: str | None = None,
    *,
    pair_id: str = "0",
    image: str = "1.jpg",
) -> TextPair:
    return TextPair(
        pair_id=pair_id,
        image=image,
        positive=positive,
        negative=negative,
        hard_positive=hard_positive,
    )


def _kinds(*pairs: TextPair) -> list[tuple[str, str, str]]:
    return [(found.record_id, found.kind, found.field) for found in lint_records(pairs)]


@pytest.mark.parametrize(
    ("positive", "negative", "hard_positive", "kind", "field"),
    cases("defects_of_one_record_are_found"),
)
def test_defects_of_one_record_are_found(
    positive: str, negative: str, hard_positive: str | None, kind: str, field: str
) -> None:
    assert _kinds(_pair(positive, negative, hard_positive)) == [("0", kind, field)]


@pytest.mark.parametrize(
    ("positive", "negative", "hard_positive"), cases("sound_records_have_no_finding")
)
def test_sound_records_have_no_finding(
    positive: str, negative: str, hard_positive: str | None
) -> None:
    assert _kinds(_pair(positive, negative, hard_positive)) == []


def test_a_perturbed_caption_may_be_garbled_but_not_unchanged() -> None:
    def perturbed(text: str, record_id: str) -> LabelledCaptions:
        return LabelledCaptions(
            record_id=record_id, image="1.jpg", positive="an old dog", perturbed=text
        )

    found = lint_records(
        [perturbed("a odl dog", "0"), perturbed("an old dog", "1"), perturbed("An old dog", "2")]
    )
    assert [(finding.record_id, finding.kind) for finding in found] == [
        ("1", "unchanged"),
        ("2", "case_or_spacing_only"),
        ("2", "near_duplicate"),
    ]


def test_repetition_is_found_within_an_image_only() -> None:
    first = _pair("red car", "tan car")
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert _kinds(
        _pair(f"red {composed}", "red car", image=f"{composed}.jpg"),
        _pair(f"red {decomposed}", "red car", image=f"{decomposed}.jpg", pair_id="1"),
        _pair(f"red {composed}", f"red {decomposed}", pair_id="2"),
    ) == [("1", "duplicate", "positive"), ("2", "negative_equals_positive", "negative")]
    assert _kinds(
        first,
        _pair("red car", "tan car", pair_id="1"),
        _pair("Red car.", "tan  car", pair_id="2"),
        _pair("red car", "tan car", pair_id="3", image="2.jpg"),
        _pair("red car", "old car", pair_id="4"),
    ) == [("1", "duplicate", "positive"), ("2", "near_duplicate", "positive")]


def test_a_duplicate_names_the_record_that_it_repeats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of those with the same letters; else the first that is near."""
    texts = {"a": "red car", "b": "Red car.", "c": "red car", "d": "Red car.", "e": "RED car"}
    row = {"image": "1.jpg", "hard_negative": "tan car"}
    path = _write(tmp_path, [{"id": name, "caption": texts[name], **row} for name in texts])

    main([str(path)])

    said = capsys.readouterr().out
    for name, twin in (("b", "a"), ("c", "a"), ("d", "b"), ("e", "a")):
        assert f"  {name} positive, as record {twin}: 1.jpg: {texts[name]} | tan car\n" in said
    assert main([str(path), "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert [found["twin"] for found in report["findings"]] == ["a", "a", "b", "a"]


def test_a_text_pair_of_several_images_is_shown_once_and_its_errata_quote_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"caption": "a covered barn", "hard_negative": "a covecrimson barn"}
    images = [texts | {"id": name, "image": f"{name}.jpg"} for name in ("a", "b", "c")]
    path, errata = _write(tmp_path, images), tmp_path / "errata.jsonl"

    assert main([str(path), "--errata", str(errata)]) == 1

    summary = capsys.readouterr().out
    assert "edit_inside_word 3 (1 distinct): " in summary
    found = "covered -> covecrimson (red -> crimson)"
    assert f"  a and 2 more records negative: {found}\n" in summary
    rows = [json.loads(line) for line in errata.read_text().splitlines()]
    assert [row["reason"] for row in rows] == [f"edit_inside_word: {found}"] * 3


def test_a_folder_of_files_is_refused_with_one_of_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, [{"id": "a", "image": "1.jpg", "caption": "a", "hard_negative": "b"}])
    (tmp_path / "README.md").touch()

    assert main([str(tmp_path)]) == 2
    assert f"pass the files themselves, such as {tmp_path}/pairs.jsonl" in capsys.readouterr().err


def test_contradictions_are_found_in_either_order() -> None:
    assert _kinds(
        _pair("red car", "tan car"),
        _pair("Tan car", "old car", "blue bus", pair_id="1"),
        _pair("black bus", "blue bus", pair_id="2"),
        _pair("tan car", "pink car", pair_id="3", image="2.jpg"),
    ) == [
        ("0", "negative_true_elsewhere", "negative"),
        ("1", "hard_positive_false_elsewhere", "hard_positive"),
    ]


@pytest.mark.parametrize(
    ("before", "after"), cases("known_damage_of_the_published_set_is_an_edit_inside_a_word")
)
def test_known_damage_of_the_published_set_is_an_edit_inside_a_word(
    before: str, after: str
) -> None:
    pair = _pair(f"one {before} x", "y", f"one {after} x")
    kinds = {kind for _, kind, field in _kinds(pair) if field == "hard_positive"}
    assert kinds == {"edit_inside_word", "invented_word"}


def test_a_fragment_that_corpora_have_too_is_no_word() -> None:
    """wordfreq has it, a typing error as it is; no dictionary has."""
    pair = _pair("one father x", "one ofher x")
    assert _kinds(pair) == [("0", "edit_inside_word", "negative")]


def test_damage_that_makes_a_word_is_a_note_where_the_file_exchanges_the_whole_words() -> None:
    """str.replace of "old" by "aged" made "caged" of "cold"."""
    damaged = _pair("cold sea", "warm sea", "caged sea")
    assert _kinds(damaged) == []
    whole = _pair("old man", "new man", "aged man", pair_id="1")
    assert _kinds(damaged, whole) == [("0", "edit_maybe_inside_word", "hard_positive")]
    assert KINDS["edit_maybe_inside_word"][0] == "note"


@pytest.mark.parametrize(
    "exchange",
    [
        *("tideline tidelines", "wii wiis", "bouttoniere boutonniere", "woman women"),
        *("kitchen kichen", "receiver receivre", "toilet toiilet", "snowman snowmen"),
    ],
)
def test_inflections_and_spellings_are_no_edits_inside_words(exchange: str) -> None:
    before, after = exchange.split()
    other = [_pair("man", "men", pair_id="1"), _pair("a", "i", pair_id="2")]
    pairs = [_pair(before, after, pair_id="p"), _pair(after, before, pair_id="q"), *other]
    assert not [kind for _, kind, _ in _kinds(*pairs) if "inside_word" in kind]


def test_a_word_exchanged_for_another_is_no_edit_inside_it_whatever_else_is_exchanged() -> None:
    whole = [
        _pair("him", "her", pair_id="0"),
        _pair("on", "off", pair_id="1"),
        _pair("it", "its", pair_id="2"),
        _pair("right", "left", pair_id="3"),
    ]
    words = ("himself herself", "onstage offstage", "suit suits", "right-handed left-handed")
    pairs = [_pair(*pair.split(), pair_id=f"w{i}") for i, pair in enumerate(words)]
    assert _kinds(*whole, *pairs) == []


def test_a_positive_that_was_damaged_is_named_as_such() -> None:
    """FOIL has captions of which a part was replaced: "basebat" beside the foil "baseball"."""
    damaged = _pair("a basebat game", "a baseball game")
    assert _kinds(damaged) == []
    for other in (_pair("a ball", "a bat", pair_id="1"), _pair("a bat", "a ball", pair_id="1")):
        assert _kinds(damaged, other) == [("0", "edit_inside_word", "positive")]


def test_endless_words_and_texts_are_linted_in_their_time() -> None:
    """The readings of two words as an edit inside one grow with the product of what they share."""
    word = "a" * 20_000
    pair = _pair(f"{word}b{word}", f"{word}c{word}")
    assert {kind for _, kind, _ in _kinds(pair)} <= {"invented_word", "edit_beyond_context"}
    text = "a " * 50_000
    assert "word_twice" in {kind for _, kind, _ in _kinds(_pair(text, f"{text} dog"))}


def test_an_exchanged_stem_is_no_edit_inside_a_word() -> None:
    pairs = [
        _pair("they walk", "they talk", pair_id="0"),
        _pair("a man walking", "a man talking", pair_id="1"),
        _pair("a taller man", "a smaller man", pair_id="2"),
        _pair("a tall man", "a small man", pair_id="3"),
    ]
    assert _kinds(*pairs) == []


def test_edits_behind_the_context_of_clip_are_found_to_the_token() -> None:
    for words in range(70, 80):
        positive, negative = (" ".join(["dog"] * words + [last]) for last in ("cat", "cow"))
        tokens = words + 2
        assert count_clip_tokens(" ".join(["dog"] * words)) == tokens
        is_cut_off = words >= 75  # token 77 is the end of the text
        found = [kind for _, kind, _ in _kinds(_pair(positive, negative))]
        assert found == (["edit_beyond_context"] if is_cut_off else [])


TEXTS = st.text(max_size=40) | st.lists(
    st.sampled_from(["a", "an", "red", "Red", "covered", "old", "cold", "caged", ".", " "])
).map(" ".join)


@given(st.lists(st.tuples(TEXTS, TEXTS, st.none() | TEXTS), max_size=6))
def test_any_captions_are_linted_without_a_crash(captions: list) -> None:
    pairs = [_pair(*texts, pair_id=str(i)) for i, texts in enumerate(captions)]
    found = list(lint_records(pairs))
    assert found == list(lint_records(pairs))
    assert {finding.kind for finding in found} <= set(KINDS)
    for pair in pairs:
        own = [finding for finding in found if finding.record_id == pair.pair_id]
        equal = any(finding.kind == "negative_equals_positive" for finding in own)
        assert equal == (pair.positive == pair.negative)


def _write(folder: Path, rows: list[dict[str, str]]) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_command_says_what_it_found_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": "a", "image": "1.jpg", "caption": "red car", "hard_negative": "red car"}
    path = _write(tmp_path, [row])
    assert main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "1 error, 0 warnings, 0 notes in 1 record" in out
    assert "error    negative_equals_positive 1" in out
    assert main([str(path), "--json"]) == 1
    printed = capsys.readouterr()
    (report,) = json.loads(printed.out)
    assert (report["path"], report["records"]) == (str(path), 1)
    assert report["findings"] == [
        {
            "record_id": "a",
            "kind": "negative_equals_positive",
            "field": "negative",
            "detail": "red car",
            "twin": "",
            "severity": "error",
        }
    ]
    assert "1 error, 0 warnings, 0 notes in 1 record" in printed.err


def test_the_exit_status_follows_the_severity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": "a", "image": "1.jpg", "caption": "red car", "hard_negative": "snurbly car"}
    path = _write(tmp_path, [row])
    assert main([str(path)]) == 1
    assert main([str(path), "--fail-on", "error"]) == 0
    path = _write(tmp_path, [row | {"hard_negative": "tan car"}])
    assert main([str(path)]) == 0
    assert "0 errors, 0 warnings, 0 notes in 1 record" in capsys.readouterr().out


def test_unreadable_input_or_none_is_exit_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read" in capsys.readouterr().err
    assert main([]) == 2  # a pattern that matches nothing must not pass
    assert "eqforge lint needs PATHS" in capsys.readouterr().err


def test_what_is_true_of_one_part_of_an_image_may_be_false_of_another() -> None:
    left, right = CornerBox(x0=0, y0=0, x1=5, y1=5), CornerBox(x0=5, y0=0, x1=9, y1=5)
    texts = ("a red car", "a blue car")

    def kinds(*boxes: CornerBox | None) -> set[str]:
        records = [
            LabelledCaptions(
                record_id=str(number), image="1.jpg", positive=positive, negative=negative, box=box
            )
            for number, ((positive, negative), box) in enumerate(
                zip((texts, texts[::-1]), boxes, strict=True)
            )
        ]
        return {found.kind for found in lint_records(records) if found.severity == "error"}

    assert kinds(left, right) == set()
    assert kinds(left, left) == kinds(None, None) == {"negative_true_elsewhere"}


def test_captions_of_two_images_are_no_edits_of_each_other() -> None:
    """Neither is a negative, and a German word is not made by an edit."""
    german = _pair("eine Katze", "eine Pfanne")
    longer = _pair("a man", "a man in a very long coat")

    assert _kinds(german) == [("0", "invented_word", "negative")]
    assert _kinds(replace(german, design="two_by_two")) == []
    assert _kinds(replace(longer, design="two_by_two")) == [("0", "length_gap", "other_caption")]
    both = [replace(_pair("a cat", "a dog"), design="two_by_two"), _pair("a dog", "a cat")]
    assert ("0", "negative_true_elsewhere", "other_caption") in _kinds(*both)
