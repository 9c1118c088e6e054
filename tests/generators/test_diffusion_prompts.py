"""The prompts of Eq-SD: their English, their published form, and which words an edit touches."""

import re

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.prompts import (
    EDIT_KINDS,
    EditKind,
    Language,
    Picture,
    PromptPair,
    draw_counts,
    ordered_edits,
    prompt_pair,
    prompt_pairs,
)
from eqforge.generators.diffusion.vocabulary import Phrase, Vocabulary, load_vocabulary
from eqforge.generators.text.caption_lint import count_clip_tokens
from eqforge.generators.text.edits import agree_articles
from eqforge.generators.text.words import word_edit

PAPER, TENFOLD = 1_513, 15_130
LANGUAGES: tuple[Language, ...] = ("english", "published")


def firsts(counts: dict[str, int]) -> dict[str, range]:
    """The numbers of the first pairs of each kind."""
    return {kind: range(count) for kind, count in counts.items()}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary()


@pytest.fixture(scope="module")
def some(vocabulary: Vocabulary) -> list[PromptPair]:
    """The paper's number of pairs in both languages."""
    counts = draw_counts(PAPER, 0)
    return [
        pair
        for language in LANGUAGES
        for pair in prompt_pairs(vocabulary, firsts(counts), 0, language, language == "published")
    ]


def find(
    vocabulary: Vocabulary, kind: EditKind, first: dict[str, str], second: dict[str, str]
) -> int:
    """Returns the number of the edit between two pictures, whichever of them comes first."""
    wanted = [picture(**first), picture(**second)]
    for number, edit in enumerate(ordered_edits(vocabulary, kind, 0, additions=True)):
        if edit.pictures[0] in wanted and edit.pictures[1] in wanted:
            return number
    raise AssertionError(f"no edit of {wanted}")


def picture(**texts: str) -> Picture:
    return Picture(**{name: phrase(text) for name, text in texts.items()})


def phrase(text: str) -> Phrase:
    first, _, rest = text.partition(" ")
    article = first if first in ("a", "an") else ""
    return Phrase(article, tuple((rest if article else text).split()))


def words(pair: PromptPair, numbers: tuple[tuple[int, ...], tuple[int, ...]]) -> list[list[str]]:
    return [
        [prompt.split()[number] for number in chosen]
        for prompt, chosen in zip(pair.prompts, numbers, strict=True)
    ]


BEACH = {"style": "a photo", "thing": "a beach"}
CAT = {"style": "a painting", "thing": "a cat"}
DOG = {"style": "a photo", "thing": "a dog"}
HORSE = {"style": "a photo", "thing": "a horse", "place": "in the zoo"}


def test_published_captions_read_as_the_paper_prints_them(vocabulary: Vocabulary) -> None:
    number = find(vocabulary, "scene", BEACH, BEACH | {"condition": "at sunset"})
    added = prompt_pair(vocabulary, "scene", number, 0, "published", additions=True)
    assert added.captions == ("A photo of beach.", "A photo of beach at sunset.")
    assert added.control == "refine"
    assert words(added, added.changed) == [[], ["at", "sunset"]]
    assert words(added, added.blended) == [[], []]

    cap, crown = (CAT | {"after": f"wearing a {what}"} for what in ("cap", "crown"))
    number = find(vocabulary, "attribute", cap, crown)
    exchanged = prompt_pair(vocabulary, "attribute", number, 0, "published", additions=True)
    assert sorted(exchanged.captions) == [
        "A painting of cat wearing a cap.",
        "A painting of cat wearing a crown.",
    ]
    assert exchanged.control == "replace"
    assert sorted(words(exchanged, exchanged.changed)) == [["cap"], ["crown"]]
    assert exchanged.blended == exchanged.changed

    number = find(vocabulary, "attribute", DOG, DOG | {"after": "with sunglasses"})
    dog = prompt_pair(vocabulary, "attribute", number, 0, "published", additions=True)
    assert dog.captions == ("A photo of dog.", "A photo of dog with a sunglasses.")


def test_the_same_pairs_in_plain_english(vocabulary: Vocabulary) -> None:
    number = find(vocabulary, "object", HORSE, HORSE | {"thing": "an elephant"})
    published = prompt_pair(vocabulary, "object", number, 0, "published", additions=True)
    english = prompt_pair(vocabulary, "object", number, 0, "english", additions=True)
    assert sorted(published.captions) == [
        "A photo of elephant in the zoo.",
        "A photo of horse in the zoo.",
    ]
    assert sorted(english.captions) == [
        "A photo of a horse in the zoo.",
        "A photo of an elephant in the zoo.",
    ]
    assert sorted(words(english, english.changed)) == [["a", "horse"], ["an", "elephant"]]
    assert sorted(words(english, english.blended)) == [["elephant"], ["horse"]]
    assert english.control == "replace"
    assert (english.sample_id, english.seed) == (published.sample_id, published.seed)

    number = find(vocabulary, "attribute", DOG, DOG | {"after": "with sunglasses"})
    dog = prompt_pair(vocabulary, "attribute", number, 0, "english", additions=True)
    assert dog.captions == ("A photo of a dog.", "A photo of a dog with sunglasses.")
    number = find(vocabulary, "object", HORSE, HORSE | {"thing": "cattle"})
    cattle = prompt_pair(vocabulary, "object", number, 0, "english", additions=True)
    assert "A photo of cattle in the zoo." in cattle.captions
    assert cattle.control == "refine"


def test_every_article_of_the_english_captions_agrees(some: list[PromptPair]) -> None:
    english = some[: len(some) // 2]
    for pair in english:
        for caption in pair.captions:
            assert agree_articles(caption) == ()
            assert re.fullmatch(r"[A-Z][a-z ]+\.", caption)
    mass = [caption for pair in english for caption in pair.captions if " cattle" in caption]
    assert mass
    assert not any(re.search(r"\ba (\w+ )?cattle", caption) for caption in mass)


def test_without_the_words_that_changed_the_prompts_are_equal(some: list[PromptPair]) -> None:
    for pair in some:
        kept = [
            [word for number, word in enumerate(prompt.split()) if number not in changed]
            for prompt, changed in zip(pair.prompts, pair.changed, strict=True)
        ]
        assert kept[0] == kept[1]
        assert pair.changed[1]
        assert pair.captions == (f"{pair.prompts[0]}.", f"{pair.prompts[1]}.")
        # At least as many as an independent word-by-word comparison finds.
        assert max(map(len, pair.changed)) >= word_edit(*pair.captions).distance > 0


def test_replace_puts_every_word_in_the_place_of_one(some: list[PromptPair]) -> None:
    assert {pair.control for pair in some} == {"replace", "refine"}
    for pair in some:
        first, second = (prompt.split() for prompt in pair.prompts)
        assert (pair.control == "replace") == (len(first) == len(second))
        if pair.control == "replace":
            differing = {n for n in range(len(first)) if first[n] != second[n]}
            assert differing <= set(pair.changed[0])
            assert pair.changed[0] == pair.changed[1]


def test_only_scenes_may_change_everywhere(some: list[PromptPair]) -> None:
    for pair in some:
        sides = list(map(bool, pair.blended))
        assert sides == [pair.kind != "scene"] * 2
        for numbers, prompt in zip(pair.blended, pair.prompts, strict=True):
            assert all(0 <= number < len(prompt.split()) for number in numbers)


def test_the_object_is_said_where_something_is_added_to_it(some: list[PromptPair]) -> None:
    added = [p for p in some if p.kind == "attribute" and not p.changed[0]]
    assert added
    for pair in added:
        thing = set(pair.thing.split()) - {"a", "an", "of"}
        assert thing <= set(words(pair, pair.blended)[0])
        assert thing < set(words(pair, pair.blended)[1]) or pair.change in (
            "colour",
            "material",
            "pattern",
        )


def test_ten_times_the_papers_pairs_without_repetition(vocabulary: Vocabulary) -> None:
    cases: tuple[tuple[Language, bool], ...] = (("english", False), ("published", True))
    for language, additions in cases:
        counts = draw_counts(TENFOLD, 0)
        pairs = list(prompt_pairs(vocabulary, firsts(counts), 0, language, additions))
        assert len(pairs) == TENFOLD
        assert len({pair.sample_id for pair in pairs}) == TENFOLD
        assert len({frozenset(pair.captions) for pair in pairs}) == TENFOLD
        assert len({pair.seed for pair in pairs}) == TENFOLD
        every = [len(ordered_edits(vocabulary, kind, 0, additions)) for kind in EDIT_KINDS]
        assert [number >= TENFOLD for number in every] == [True, additions, True]
        assert sum(every) > 3 * TENFOLD


def test_without_additions_either_prompt_says_what_the_other_does_not(
    some: list[PromptPair],
) -> None:
    english, published = some[: len(some) // 2], some[len(some) // 2 :]
    assert all(pair.changed[0] and pair.changed[1] for pair in english)
    added = sum(not pair.changed[0] for pair in published)
    assert 0.2 < added / len(published) < 0.5


def test_every_prompt_fits_into_the_text_encoder(some: list[PromptPair]) -> None:
    assert max(count_clip_tokens(prompt) for pair in some for prompt in pair.prompts) <= 40


def test_the_kinds_are_drawn_evenly_and_more_pairs_take_none_away() -> None:
    counts = [draw_counts(number, 7) for number in (20, PAPER)]
    for kind in EDIT_KINDS:
        assert counts[0][kind] <= counts[1][kind]
        # Three standard deviations of a binomial: sqrt(1513 * 1/3 * 2/3) = 18.3.
        assert abs(counts[1][kind] - PAPER / 3) < 3 * 18.4
    assert counts[0] != draw_counts(20, 8)
    assert sum(counts[0].values()) == 20


def test_the_kinds_take_turns_and_are_counted_by_themselves(vocabulary: Vocabulary) -> None:
    pairs = prompt_pairs(vocabulary, firsts({"object": 2, "attribute": 3}), 0, "english")
    assert [pair.sample_id for pair in pairs] == [
        "eq-sd/object/000000",
        "eq-sd/attribute/000000",
        "eq-sd/object/000001",
        "eq-sd/attribute/000001",
        "eq-sd/attribute/000002",
    ]


def test_more_pairs_than_the_vocabulary_has_is_a_clear_error(vocabulary: Vocabulary) -> None:
    counts = {"object": 1_000_000}
    with pytest.raises(
        InputError,
        match=r"only 1\d,\d{3} pairs that change the object, but the build needs 1,000,000",
    ):
        next(prompt_pairs(vocabulary, firsts(counts), 0, "english"))
