"""Questions that a letter, yes or no answers: how one is put and read, and what all count.

`eqforge export --format lmms-eval` copies this file beside its questions as `utils.py`, whose
functions the harness calls, and `eqforge metrics` reads answers with the same functions. So it
imports nothing but the standard library, and holds nothing of a dataset.
"""

import json
import re
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CALLED = r"(?i:(?:the\s+)?(?:(?:correct|right|best)\s+)?(?:answer|option|choice))"
_WHOLE = re.compile(rf"\W*(?:{_CALLED}(?i:\s+is)?\W*)?([A-Za-z])\W*")
_FIRST = re.compile(r"\W*([A-Z](?=[.):,]|\s*\n)|[a-z](?=[.):]))")
_YES_OR_NO = re.compile(r"\b(?:yes|no|true|false)\b", re.IGNORECASE)
_ARTICLE = r"\s+(?!(?:because|since|as|or|and|for|with)\b)[a-z]"
_NAMED = re.compile(rf"\(([A-Z])\)|{_CALLED}(?i:\s+is)?[\s:\"'*(]*([A-Z])(?![\w'])(?!{_ARTICLE})")
FOR_LETTER = "Answer with the option's letter from the given choices directly."
"""How lmms-eval asks for it, in `tasks/mmvp` and others (0.7.3)."""

_THOUGHTS = re.compile(r"\A.*</think>|<think>.*\Z", re.DOTALL)
_WRAPPING = " \t\n.,:;!\"'`*()[]\u201c\u201d\u2018\u2019"


def without_thoughts(answer: str) -> str:
    """Return an answer without what a model thinks before it; nothing if it never ends to think."""
    return _THOUGHTS.sub("", answer)


def read_letter(answer: str, options: list[str]) -> str | None:
    """Return the letter that an answer names; None if it names none, or several.

    An answer is the letter alone, begins with it ("B. a red cup", not "A cup on a table"), names it
    ("The answer is (B)"), or is the text of one option.
    """
    options = options[: len(LETTERS)]
    letters = LETTERS[: len(options)]
    texts = [_plain(option) for option in options]
    if texts.count(_plain(answer)) == 1:
        return letters[texts.index(_plain(answer))]
    candidates = {first or second for first, second in _NAMED.findall(answer)}
    if found := _WHOLE.fullmatch(answer) or _FIRST.match(answer):
        candidates.add(found[1].upper())
    return candidates.pop() if len(candidates) == 1 and candidates <= set(letters) else None


def read_answer(answer: str, options: list[str], right: str) -> str | None:
    """Return an answer in the form of the right one; None if it has none of its values.

    Of yes and no the first counts, as in the code of NaturalBench (`extract_answer`).

    Args:
      options: the texts of the options A, B, …; empty where the question itself names them.
      right: the right answer: a letter; without options also yes, no, true or false in any case.
    """
    answer = without_thoughts(answer)
    if options or right in list(LETTERS):
        return read_letter(answer, options or list(LETTERS))
    found = _YES_OR_NO.search(answer)
    return None if found is None else found[0].lower()


def is_right(answer: str, options: list[str], right: str) -> bool:
    reading = read_answer(answer, options, right)
    return reading is not None and reading.casefold() == right.casefold()


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(_WRAPPING).casefold()


def text(doc: dict[str, Any], kwargs: Any = None) -> str:
    """Return the question of a row with its options, as a model is asked."""
    del kwargs
    options = [f"{letter}. {doc[letter]}" for letter in _letters(doc)]
    return "\n".join([doc["question"], *options, *([FOR_LETTER] if options else [])])


def _letters(doc: dict[str, Any]) -> list[str]:
    return [letter for letter in LETTERS if doc.get(letter) is not None]


def visual(doc: dict[str, Any]) -> list[Any]:
    """Return the images of a row, one or two, in the order that the question speaks of."""
    images = [doc["image_0"], doc["image_1"]]
    return [image.convert("RGB") for image in images if image is not None]


def results(doc: dict[str, Any], answers: list[str]) -> dict[str, dict[str, Any]]:
    """Return what an answer counts for each metric.

    `accuracy` is over questions. The others are over units of questions that have to be right
    together: `counts_in` of the row is a JSON object of the unit it is of, and of how many
    questions that has, by metric. Of a text that only `eqforge metrics` judges, `answered` says
    whether there is one.
    """
    names = ("question_id", "sample_id", "cluster")
    if doc["asks"] == "words":
        ids = {name: doc[name] for name in names}
        return {"answered": {**ids, "score": float(bool(answers[0].strip()))}}
    right = is_right(answers[0], [doc[letter] for letter in _letters(doc)], doc["answer"])
    item = {**{name: doc[name] for name in names}, "right": right}
    found = {"accuracy": {**item, "score": float(right)}}
    for metric, (unit, questions) in json.loads(doc["counts_in"]).items():
        found[metric] = {**item, "unit": unit, "questions": questions}
    return found


def accuracy(items: list[dict[str, Any]]) -> float:
    return sum(item["score"] for item in items) / len(items)


def right_in_all(items: list[dict[str, Any]]) -> float:
    """Return the share of units all of whose questions were answered right.

    Units whose questions were not all asked are left out. The harness takes standard errors over
    the items that have a score, after it has called this: so one item of each unit gets the unit's.
    """
    units: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        units.setdefault(item["unit"], []).append(item)
    whole = [group for group in units.values() if len(group) == group[0]["questions"]]
    for group in whole:
        group[0]["score"] = float(all(item["right"] for item in group))
    return sum(group[0]["score"] for group in whole) / len(whole) if whole else float("nan")
