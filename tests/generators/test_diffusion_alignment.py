import functools
import itertools

import numpy as np
import pytest

from eqforge.core.errors import InputError, MissingExtra
from eqforge.generators.diffusion.alignment import (
    align_tokens,
    published_refinement,
    published_replacement,
    published_tokens,
    refinement,
    replacement,
    tokenize,
)
from eqforge.generators.text.caption_lint import read_vocabulary


@pytest.fixture(scope="module")
def tokenizer():
    """CLIP's own tokenizer, from the vocabulary in open_clip's wheel."""
    transformers = pytest.importorskip("transformers")
    try:
        symbols, merges = read_vocabulary()
    except MissingExtra as error:
        pytest.skip(str(error))
    symbols += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=77)


@pytest.fixture(scope="module")
def read(tokenizer):
    return functools.partial(tokenize, tokenizer=tokenizer)


def texts(prompt, tokenizer, positions):
    return [tokenizer.decode([prompt.ids[position]]) for position in positions]


def test_words_know_all_their_tokens(read, tokenizer):
    prompt = read("A photo of a Hippopotamus, wearing a t-shirt.")
    assert texts(prompt, tokenizer, prompt.find(4)) == ["hippo", "potam", "us"]
    assert texts(prompt, tokenizer, prompt.find(7)) == ["t", "-", "shirt"]
    assert [word.text for word in prompt.words if word.place == 4] == ["hippopotamus", ","]


def test_letters_of_several_tokens_belong_to_their_word(read, tokenizer):
    prompt = read("a ﬁne café — in snow")
    assert len(prompt.find(1)) == 4
    assert texts(prompt, tokenizer, prompt.find(5)) == ["snow"]


def test_a_prompt_the_encoder_would_cut_is_an_error(read):
    with pytest.raises(InputError, match=r"has 82 tokens, but the text encoder reads at most 77"):
        read("cat " * 80)


@pytest.mark.parametrize("prompt", ["", "   "])
def test_a_prompt_without_words_is_an_error(read, prompt):
    with pytest.raises(InputError, match="cannot split the prompt"):
        read(prompt)


def test_replacing_words_of_as_many_tokens_moves_nothing(read):
    found = replacement(read("a photo of a horse on grass"), read("a photo of a zebra on grass"))
    assert np.array_equal(found.mapper, np.eye(77))
    assert not found.own.any()


def test_a_word_of_more_tokens_shares_its_attention_and_the_rest_follows(read):
    first, second = read("a horse on grass"), read("a hippopotamus on grass")
    found = replacement(first, second)
    expected = np.zeros((77, 77))
    expected[0, 0] = expected[1, 1] = 1
    expected[2, [2, 3, 4]] = 1 / 3  # horse
    expected[3, 5] = expected[4, 6] = expected[5, 7] = 1  # on, grass, the end
    for padding in range(6, 77):
        expected[padding, min(padding + 2, 76)] = 1
    assert np.allclose(found.mapper, expected)
    assert np.allclose(found.mapper.sum(axis=1), 1)


def test_a_word_of_fewer_tokens_collects_their_attention(read):
    found = replacement(read("a hippopotamus on grass"), read("a horse on grass"))
    assert found.mapper[[2, 3, 4], 2].tolist() == [1, 1, 1]
    assert found.mapper[5, 3] == found.mapper[6, 4] == found.mapper[7, 5] == 1
    assert not found.mapper[:, 75:].any()
    assert np.allclose(found.mapper.sum(axis=1), 1)


def test_replacing_wants_as_many_words(read):
    with pytest.raises(
        InputError, match=r"has 4 words .*, but 'a photo of a beach at sunset' has 7"
    ):
        replacement(read("photo of a beach"), read("a photo of a beach at sunset"))


def longest_common_subsequence(first, second):
    """By trying all of them."""
    for size in range(min(len(first), len(second)), 0, -1):
        ones = set(itertools.combinations(first, size))
        if any(other in ones for other in itertools.combinations(second, size)):
            return size
    return 0


@pytest.mark.parametrize("seed", range(30))
def test_refining_finds_a_longest_common_subsequence(seed):
    rng = np.random.default_rng(seed)
    first, second = (rng.integers(0, 4, rng.integers(1, 8)).tolist() for _ in range(2))
    found = align_tokens(first, second)
    kept = [(source, target) for target, source in enumerate(found) if source is not None]
    assert all(first[source] == second[target] for source, target in kept)
    assert [source for source, _ in kept] == sorted({source for source, _ in kept})
    assert len(kept) == longest_common_subsequence(first, second)


def test_refining_keeps_new_tokens_apart(read):
    first, second = read("a photo of a beach"), read("a photo of a beach at sunset")
    found = refinement(first, second, ((), (5, 6)))
    assert np.flatnonzero(found.own).tolist() == [6, 7]
    expected = np.zeros((77, 77))
    for token in range(6):
        expected[token, token] = 1
    expected[6, 8] = 1  # the end of the text
    for padding in range(9, 77):
        expected[padding, padding] = 1
    assert np.array_equal(found.mapper, expected)


def test_refining_to_fewer_words_meets_no_word_with_padding(read):
    first, second = read("a photo of a beach at sunset"), read("a photo of a beach")
    found = refinement(first, second, ((5, 6), ()))
    assert not found.mapper[[6, 7]].any()
    assert found.mapper[8, 6] == found.mapper[9, 7] == found.mapper[76, 74] == 1
    assert np.flatnonzero(found.own).tolist() == [75, 76]


def test_words_that_are_known_to_change_are_not_taken_for_others(read, tokenizer):
    first = read("a cat on a mat")
    second = read("a cat on a rug on a mat")
    told = refinement(first, second, ((), (3, 4, 5)))
    assert np.flatnonzero(told.own).tolist() == [4, 5, 6]
    assert told.mapper[[3, 4, 5], [3, 7, 8]].tolist() == [1, 1, 1]
    blind = published_refinement(first, second, tokenizer)
    assert np.flatnonzero(blind.own).tolist() == [5, 6, 7]


def test_words_that_are_known_to_change_have_to_be_all_that_differs(read):
    with pytest.raises(InputError, match=r"differ only at .* none in the first; 4 in"):
        refinement(read("a cat on a mat"), read("a dog on a red mat"), ((), (4,)))


def test_the_published_alignment_has_its_defects(read, tokenizer):
    first, second = read("a horse on grass"), read("a hippopotamus on grass")
    mapper = published_replacement(first, second, tokenizer).mapper
    assert np.allclose(mapper[2, [2, 3, 4]], 1 / 3)
    # "on" (5) takes the end of the first text, not its "on" (3).
    assert mapper[5, 5] == 1
    assert mapper[3, 5] == 0
    assert published_tokens(read("a cat, a hat"), tokenizer, 1) == (2, 3)  # with the comma
    shorter = published_refinement(
        read("a photo of a beach at sunset"), read("a photo of a beach"), tokenizer
    )
    assert shorter.mapper[7, 7] == 1  # padding that attends as "sunset" did


def test_the_published_alignment_is_exact_where_tokens_are_as_many(read, tokenizer):
    first, second = read("a photo of a horse on grass"), read("a photo of a zebra on grass")
    exact, published = (replacement(first, second), published_replacement(first, second, tokenizer))
    assert np.array_equal(exact.mapper, published.mapper)
    longer = read("a photo of a horse on grass at sunset")
    exact = refinement(first, longer, ((), (7, 8)))
    published = published_refinement(first, longer, tokenizer)
    assert np.array_equal(exact.mapper, published.mapper)
    assert np.array_equal(exact.own, published.own)


def test_the_published_replacement_wants_as_many_pieces(read, tokenizer):
    with pytest.raises(InputError, match="the same number of words"):
        published_replacement(read("a cat"), read("a red cat"), tokenizer)
