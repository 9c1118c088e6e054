"""Agreement of "a" and "an" with the word behind them."""

import functools
import itertools
import re
from typing import TYPE_CHECKING

from eqforge.generators.text.edits import Edit
from eqforge.generators.text.tokenizer import find_tokens
from eqforge.schemas.errors import MissingExtra

if TYPE_CHECKING:
    import inflect

_VOWEL_NUMBER = re.compile(r"8|1[18](?!\d)")  # an 8, an 80-foot, an 11th, an 18-wheeler
_LABELS = frozenset(("grade", "group", "letter", "letters", "level", "plan", "type", "vitamin"))


def article_for(word: str) -> str | None:
    """Returns "a" or "an", whichever stands before the word; None where spelling cannot tell.

    Words in capitals cannot be told: they are read as letters ("an MP") or as a word ("a MAN").

    Args:
      word: one word, number or letter.

    Raises:
      MissingExtra: inflect is not installed.
    """
    if not word[:1].isalnum() or (len(word) > 1 and word[0].isalpha() and word.isupper()):
        return None
    if word[0].isdigit():
        return "an" if _VOWEL_NUMBER.match(word) else "a"
    return _article_by_sound(word.lower())


def agree_articles(text: str) -> tuple[Edit, ...]:
    """Returns the edits that make every "a" and "an" of a text agree with the word behind it.

    Letter case is kept. An "A" in capitals inside a sentence, or behind "letter", is a name and
    stays.

    Raises:
      MissingExtra: inflect is not installed.
    """
    tokens = list(find_tokens(text))
    edits = []
    for index, (token, following) in enumerate(itertools.pairwise(tokens)):
        found = token[0]
        before = tokens[index - 1][0].lower() if index else "."
        if found.lower() not in ("a", "an") or _is_label(found, before):
            continue
        if text[token.end() : following.start()].strip(" \t") or token.end() == following.start():
            continue
        right = article_for(following[0])
        if right is not None and right != found.lower():
            cased = right.capitalize() if found[0].isupper() else right
            edits.append(Edit(start=token.start(), end=token.end(), replacement=cased))
    return tuple(edits)


def _is_label(article: str, before: str) -> bool:
    """Tells whether an "A" or "a" is a letter and no article: "the letter a", "team A"."""
    return before in _LABELS or (article[0].isupper() and before not in (".", "!", "?", '"', ":"))


@functools.lru_cache(maxsize=65_536)
def _article_by_sound(word: str) -> str:
    return str(_engine().a(word).split()[0])


@functools.cache
def _engine() -> "inflect.engine":
    try:
        import inflect
    except ImportError as error:
        raise MissingExtra("inflect", "text") from error
    return inflect.engine()
