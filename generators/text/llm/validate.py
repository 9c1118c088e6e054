"""Check a language model's rewrite of a caption, and apply only the one allowed edit.

Models also fix grammar, drop full stops and change capitals. An answer is compared with the caption
word by word. If it differs only in the one allowed edit, that edit is applied to the original
caption, so nothing else can change. The authors accepted any answer, with several edits (appendix
C.3); in that mode the answer only has to be a text like the caption.
"""

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

from eqforge.generators.text.analysis import Analysis, Token, find_tokens, is_word
from eqforge.generators.text.edits import (
    Edit,
    EditedText,
    agree_articles,
    apply_edits,
    common_ends,
    exchange_phrases,
)
from eqforge.generators.text.hard_negatives.lexicon import NegativeKind
from eqforge.generators.text.hard_negatives.make import find_hard_negatives
from eqforge.generators.text.hard_positives.reconcile import text_key
from eqforge.generators.text.language import is_known_word
from eqforge.generators.text.words import reasons, word_edit, word_set
from eqforge.schemas.records.values import spans_of

PromptName = Literal["swap", "replace", "replace_printed", "replace_verb", "replace_spatial"]

MAX_WORDS_BEFORE = 2
MAX_WORDS_AFTER = 4
LINES: Final = 3
MAX_TIMES_AS_LONG: Final = 2
LEAST_SHARE_OF_WORDS: Final = 0.5
"""Minimum share of an answer's words that are the caption's; the authors' sample has at least 8 of
14."""
_MARKUP: Final = re.compile(r"[<>{}()\[\]\\`|*#=^~_@$]|://|www\.", re.IGNORECASE)
_FALSE: Final[tuple[NegativeKind, ...]] = (
    *("replace_object", "replace_attribute", "replace_relation"),
)

REWRITE_REFUSALS = reasons("rewrites")

_SPATIAL = word_set("validate.spatial")


class InvalidRewrite(Exception):
    """An answer is rejected; the argument is a key of REWRITE_REFUSALS."""


def lines_of(answer: str, caption: str) -> list[str]:
    """Return the first lines of an answer that are not blank, without surrounding text.

    A model may announce its answer in a line of its own or before a colon, quote it, and use
    typographic apostrophes. There is always one line, even if empty.
    """
    if "\u2019" not in caption:
        answer = answer.replace("\u2019", "'")
    lines = [line.strip() for line in answer.splitlines() if line.strip()][:LINES]
    if ":" not in caption:
        lines = [line.rpartition(":")[2].strip() for line in lines]
    return [
        line[1:-1] if len(line) > 1 and line[0] + line[-1] in ('""', "''", "\u201c\u201d") else line
        for line in lines
        if line
    ] or [""]


def first_valid(
    answer: str, caption: str, check: Callable[[str], EditedText], *, is_cut: bool = False
) -> EditedText:
    """Apply a check to the lines of an answer, and return its first result without an error.

    An answer that is cut loses its last line. If all lines are rejected, the first error is raised.
    """
    errors: list[InvalidRewrite] = []
    lines = lines_of(answer.rpartition("\n")[0] if is_cut else answer, caption)
    if is_cut and lines == [""]:
        raise InvalidRewrite("cut_off")
    for line in lines:
        try:
            return check(line)
        except InvalidRewrite as error:
            errors.append(error)
    raise errors[0]


def check_rewrite(analysis: Analysis, line: str, prompt: PromptName) -> EditedText:
    tokens = [token for token in analysis.tokens if is_word(token)]
    words = [token.text.lower() for token in tokens]
    line = line.lower() if line.isupper() else line
    found = [match[0] for match in find_tokens(line) if any(map(str.isalnum, match[0]))]
    new_words = [word.lower() for word in found]
    if not found:
        raise InvalidRewrite("empty")
    if new_words == words:
        raise InvalidRewrite("unchanged")
    is_swap = prompt == "swap"
    edits: tuple[Edit, ...] = (
        _swap_edits(analysis, tokens, words, new_words)
        if is_swap
        else (_replacement(analysis, tokens, found, prompt),)
    )
    edited = apply_edits(analysis.text, edits)
    if len(agree_articles(edited.text)) > len(agree_articles(analysis.text)):
        raise InvalidRewrite("wrong_article")
    if not is_swap:
        content, rng = text_key(edited.text), random.Random(0)  # replacements draw nothing
        negatives = (each for kind in _FALSE for each in find_hard_negatives(analysis, kind, rng))
        if any(text_key(each.text) == content for each in negatives):
            raise InvalidRewrite("made_false")
    return edited


def parse_published_rewrite(caption: str, line: str) -> EditedText:
    longest = MAX_TIMES_AS_LONG * len(caption) + 20
    words, new_words = (
        [t for match in find_tokens(text) if any(map(str.isalnum, t := match[0].lower()))]
        for text in (caption, line[: longest + 1])
    )
    if not new_words:
        raise InvalidRewrite("empty")
    if len(line) > longest:
        raise InvalidRewrite("huge")
    foreign = {found.lower() for found in _MARKUP.findall(line)}
    if not line.isprintable() or any(mark not in caption.lower() for mark in foreign):
        raise InvalidRewrite("not_plain")
    if new_words == words:
        raise InvalidRewrite("unchanged")
    if (Counter(words) & Counter(new_words)).total() < LEAST_SHARE_OF_WORDS * len(new_words):
        raise InvalidRewrite("another_text")
    edit = word_edit(caption, line)
    return EditedText(
        text=line, spans_before=spans_of(edit.spans_0), spans_after=spans_of(edit.spans_1)
    )


def _replacement(
    analysis: Analysis, tokens: list[Token], found: list[str], prompt: PromptName
) -> Edit:
    words, new_words = [t.text.lower() for t in tokens], [word.lower() for word in found]
    first, last = common_ends(words, new_words)
    old, new = tokens[first : len(tokens) - last], found[first : len(found) - last]
    if not old or not new:
        raise InvalidRewrite("not_a_replacement")
    if {t.text.lower() for t in old} & {word.lower() for word in new}:
        raise InvalidRewrite("several_edits")
    articles = sum(token.text.lower() in ("a", "an") for token in old)
    if len(old) > MAX_WORDS_BEFORE + articles or len(new) > MAX_WORDS_AFTER:
        raise InvalidRewrite("too_long")
    if not all(is_known_word(word) for word in new):
        raise InvalidRewrite("invented_word")
    if prompt == "replace_verb" and not any(token.tag.startswith("VB") for token in old):
        raise InvalidRewrite("wrong_target")
    if prompt == "replace_spatial" and not any(t.text.lower() in _SPATIAL for t in old):
        raise InvalidRewrite("wrong_target")
    start, end = old[0].start, old[-1].end
    # A part of a contraction has no space before it: "isn't", "is not".
    space = " " if analysis.text[:start][-1:].isalnum() else ""
    text, word = " ".join(new), old[0].text
    if analysis.text.isupper():
        text = text.upper()
    elif len(word) == 1 or not word.isupper():  # not an acronym: a "TV" is a "television"
        text = (text[0].upper() if word[0].isupper() else text[0].lower()) + text[1:]
    return Edit(start=start, end=end, replacement=space + text)


def _swap_edits(
    analysis: Analysis, tokens: list[Token], words: list[str], new_words: list[str]
) -> tuple[Edit, Edit]:
    if Counter(words) != Counter(new_words):
        raise InvalidRewrite("not_a_permutation")
    first, last = common_ends(words, new_words)
    positions = [analysis.tokens.index(token) for token in tokens]
    for conjunction, word in enumerate(words):
        if word != "and":
            continue
        for start in range(first + 1):
            for end in range(len(words), len(words) - last - 1, -1):
                left, right = words[start:conjunction], words[conjunction + 1 : end]
                swapped = [*words[:start], *right, "and", *left, *words[end:]]
                if left and right and swapped == new_words:
                    return exchange_phrases(
                        analysis,
                        (positions[start], positions[conjunction - 1] + 1),
                        (positions[conjunction + 1], positions[end - 1] + 1),
                    )
    raise InvalidRewrite("not_a_swap")
