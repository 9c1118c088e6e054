"""Checks how a language model rewrote a caption, and applies only the one allowed edit.

Models also fix grammar, drop full stops and change capitals. An answer is compared with the caption
word by word; if it differs only in the one allowed edit, that edit is applied to the original
caption, so that nothing else can have changed.
"""

from collections import Counter

from eqforge.generators.text.analysis import Analysis, Token, is_word
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.exchange import exchange_phrases
from eqforge.generators.text.hard_positives.foils import DETERMINERS
from eqforge.generators.text.lints.vocabulary import is_known_word
from eqforge.generators.text.llm.prompts import PromptName
from eqforge.generators.text.tokenizer import find_tokens

MAX_WORDS_BEFORE = 2
MAX_WORDS_AFTER = 4

REWRITE_REFUSALS: dict[str, str] = {
    "not_applicable": "The prompt is not for such captions: SWAP is for those with 'and' and "
    "fewer than 15 words.",
    "empty": "The model answered nothing.",
    "unchanged": "The model gave the caption back.",
    "several_edits": "The answer differs from the caption in more than one place.",
    "not_a_replacement": "The answer only adds or only leaves out words.",
    "too_long": "More words were replaced, or put in, than a synonym has.",
    "invented_word": "The answer has a word that no dictionary has.",
    "wrong_target": "The replaced word is not of the kind that the prompt asks for.",
    "not_a_permutation": "A swapped caption does not have the words of the caption.",
    "not_a_swap": "The words are not exchanged around one 'and'.",
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


def first_line(answer: str) -> str:
    """Returns the first line of an answer that is not blank, without enclosing quotation marks."""
    line = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else line


def check_rewrite(analysis: Analysis, answer: str, prompt: PromptName) -> EditedText:
    """Returns the caption with the one edit of an answer.

    Args:
      analysis: the caption's analysis.
      answer: what the model wrote; its first line counts.
      prompt: the prompt that was used.

    Raises:
      InvalidRewrite: the answer is not the caption with one edit of the prompt's kind.
    """
    tokens = [token for token in analysis.tokens if is_word(token)]
    words = [token.text.lower() for token in tokens]
    line = first_line(answer)
    found = [match[0] for match in find_tokens(line) if any(map(str.isalnum, match[0]))]
    new_words = [word.lower() for word in found]
    if not found:
        raise InvalidRewrite("empty")
    if new_words == words:
        raise InvalidRewrite("unchanged")
    if prompt == "swap":
        return apply_edits(analysis.text, _swap_edits(analysis, tokens, words, new_words))
    return apply_edits(analysis.text, [_replacement(analysis, tokens, found, prompt)])


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
