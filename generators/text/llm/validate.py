"""Checks how a language model rewrote a caption, and applies only the one allowed edit.

Models also fix grammar, drop full stops and change capitals. An answer is compared with the caption
word by word; if it differs only in the one allowed edit, that edit is applied to the original
caption, so that nothing else can have changed. The authors took answers as they came, with several
edits (appendix C.3); then all that is asked is that the answer is a text like the caption.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from eqforge.generators.text.analysis import Analysis, Token, is_word
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.exchange import exchange_phrases
from eqforge.generators.text.hard_positives.foils import DETERMINERS
from eqforge.generators.text.lints.vocabulary import is_known_word
from eqforge.generators.text.llm.prompts import PromptName
from eqforge.generators.text.tokenizer import find_tokens
from eqforge.generators.text.words import word_edit
from eqforge.schemas.records.spans import spans_of

MAX_WORDS_BEFORE = 2
MAX_WORDS_AFTER = 4
LINES: Final = 3
MAX_TIMES_AS_LONG: Final = 2
LEAST_SHARE_OF_WORDS: Final = 0.5
"""Of an answer's words, those of the caption; in the authors' own sample at least 8 of 14."""
_MARKUP: Final = re.compile(r"[<>{}\[\]\\`|*#=^~_@$]|://|www\.", re.IGNORECASE)

REWRITE_REFUSALS: dict[str, str] = {
    "not_applicable": "The prompt is not for such captions: SWAP is for those with 'and' and "
    "fewer than 15 words.",
    "refused": "The model's server refused to answer.",
    "empty": "The model answered nothing.",
    "unchanged": "The model gave the caption back.",
    "several_edits": "The answer differs from the caption in more than one place.",
    "not_a_replacement": "The answer only adds or only leaves out words.",
    "too_long": "More words were replaced, or put in, than a synonym has.",
    "invented_word": "The answer has a word that no dictionary has.",
    "wrong_target": "The replaced word is not of the kind that the prompt asks for.",
    "not_a_permutation": "A swapped caption does not have the words of the caption.",
    "not_a_swap": "The words are not exchanged around one 'and'.",
    "huge": "The answer is more than twice as long as the caption.",
    "not_plain": "The answer holds markup, code, an address or hidden characters that the caption "
    "has not.",
    "another_text": "Less than half of the answer's words are the caption's.",
}
"""The closed list of reasons why an answer is rejected, each in one sentence."""

_SPATIAL = frozenset(
    (
        *("above", "across", "against", "along", "alongside", "among", "around", "at", "atop"),
        *("behind", "below", "beneath", "beside", "between", "by", "down", "in", "inside", "into"),
        *("near", "next", "on", "onto", "outside", "over", "past", "through", "toward"),
        *("towards", "under", "underneath", "up", "upon", "within"),
    )
)


class InvalidRewrite(Exception):
    """An answer is rejected; the first argument is a key of REWRITE_REFUSALS."""

    @property
    def reason(self) -> str:
        """The reason, a key of REWRITE_REFUSALS."""
        return str(self.args[0])


def lines_of(answer: str) -> list[str]:
    """Returns the first lines of an answer that are not blank, without enclosing quotation marks.

    A model may say first that it is about to answer. There is always one line, be it empty.
    """
    lines = [line.strip() for line in answer.splitlines() if line.strip()][:LINES]
    return [_without_quotes(line) for line in lines] or [""]


def _without_quotes(line: str) -> str:
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else line


def first_valid(answer: str, check: Callable[[str], EditedText]) -> EditedText:
    """Returns what a check makes of the first line of an answer that it does not reject.

    Raises:
      InvalidRewrite: all are rejected; the reason is that of the first.
    """
    errors: list[InvalidRewrite] = []
    for line in lines_of(answer):
        try:
            return check(line)
        except InvalidRewrite as error:
            errors.append(error)
    raise errors[0]


def check_rewrite(analysis: Analysis, line: str, prompt: PromptName) -> EditedText:
    """Returns the caption with the one edit of a line of an answer.

    Args:
      analysis: the caption's analysis.
      line: a line that the model wrote.
      prompt: the prompt that was used.

    Raises:
      InvalidRewrite: the answer is not the caption with one edit of the prompt's kind.
    """
    tokens = [token for token in analysis.tokens if is_word(token)]
    words = [token.text.lower() for token in tokens]
    found = [match[0] for match in find_tokens(line) if any(map(str.isalnum, match[0]))]
    new_words = [word.lower() for word in found]
    if not found:
        raise InvalidRewrite("empty")
    if new_words == words:
        raise InvalidRewrite("unchanged")
    if prompt == "swap":
        return apply_edits(analysis.text, _swap_edits(analysis, tokens, words, new_words))
    return apply_edits(analysis.text, [_replacement(analysis, tokens, found, prompt)])


def take_rewrite(caption: str, line: str) -> EditedText:
    """Returns a line of an answer with whatever it changes, as the authors took it.

    Args:
      caption: the caption.
      line: a line that the model wrote.

    Raises:
      InvalidRewrite: it is empty, says the same word by word, or is no text like the caption.
    """
    words, new_words = (_words(text) for text in (caption, line[: _longest(caption) + 1]))
    if not new_words:
        raise InvalidRewrite("empty")
    if len(line) > _longest(caption):
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


def _longest(caption: str) -> int:
    return MAX_TIMES_AS_LONG * len(caption) + 20


def _words(text: str) -> list[str]:
    """Returns the words of a text in lower case."""
    found = (match[0].lower() for match in find_tokens(text))
    return [word for word in found if any(map(str.isalnum, word))]


def _replacement(
    analysis: Analysis, tokens: list[Token], found: list[str], prompt: PromptName
) -> Edit:
    """Returns the one edit between the caption's words and those of the answer."""
    words, new_words = [t.text.lower() for t in tokens], [word.lower() for word in found]
    first = _common(words, new_words)
    last = _common(words[first:][::-1], new_words[first:][::-1])
    old, new = tokens[first : len(tokens) - last], found[first : len(found) - last]
    if not old or not new:
        raise InvalidRewrite("not_a_replacement")
    if {t.text.lower() for t in old} & {word.lower() for word in new} - DETERMINERS:
        raise InvalidRewrite("several_edits")
    if len(old) > MAX_WORDS_BEFORE + _articles(old) or len(new) > MAX_WORDS_AFTER:
        raise InvalidRewrite("too_long")
    if not all(is_known_word(word) for word in new):
        raise InvalidRewrite("invented_word")
    if not _is_target(old, prompt):
        raise InvalidRewrite("wrong_target")
    start, end = old[0].start, old[-1].end
    return Edit(start=start, end=end, replacement=_cased(" ".join(new), analysis.text[start]))


def _common(left: list[str], right: list[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def _articles(tokens: list[Token]) -> int:
    return sum(token.text.lower() in ("a", "an") for token in tokens)


def _is_target(old: list[Token], prompt: PromptName) -> bool:
    if prompt == "replace_verb":
        return any(token.tag.startswith("VB") for token in old)
    if prompt == "replace_spatial":
        return any(token.text.lower() in _SPATIAL for token in old)
    return True


def _cased(text: str, letter: str) -> str:
    """Returns a text with its first letter in the case of another letter."""
    first = text[0].upper() if letter.isupper() else text[0].lower()
    return first + text[1:]


def _swap_edits(
    analysis: Analysis, tokens: list[Token], words: list[str], new_words: list[str]
) -> tuple[Edit, Edit]:
    """Returns the edits that exchange the two phrases around the "and" that was swapped."""
    if Counter(words) != Counter(new_words):
        raise InvalidRewrite("not_a_permutation")
    first = _common(words, new_words)
    last = _common(words[first:][::-1], new_words[first:][::-1])
    for conjunction, word in enumerate(words):
        if word != "and":
            continue
        for start in range(first + 1):
            for end in range(len(words), len(words) - last - 1, -1):
                left, right = words[start:conjunction], words[conjunction + 1 : end]
                swapped = [*words[:start], *right, "and", *left, *words[end:]]
                if left and right and swapped == new_words:
                    return _exchange(analysis, tokens, (start, conjunction), (conjunction + 1, end))
    raise InvalidRewrite("not_a_swap")


def _exchange(
    analysis: Analysis, tokens: list[Token], left: tuple[int, int], right: tuple[int, int]
) -> tuple[Edit, Edit]:
    """Returns the edits that exchange two ranges of `tokens`, the caption's words."""
    positions = [analysis.tokens.index(token) for token in tokens]
    spans = [(positions[start], positions[end - 1] + 1) for start, end in (left, right)]
    return exchange_phrases(analysis, spans[0], spans[1])
