"""Questions with lettered options: how one is put, how an answer is read, and what all count.

`eqforge export --format lmms-eval` copies this file beside its questions as `utils.py`, whose
functions the harness calls, and `eqforge metrics` reads answers with the same `read_letter`. So it
imports nothing but the standard library, and holds nothing of a dataset.
"""

import re
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CALLED = r"(?i:(?:the\s+)?(?:(?:correct|right|best)\s+)?(?:answer|option|choice))"
_WHOLE = re.compile(rf"\W*(?:{_CALLED}(?i:\s+is)?\W*)?([A-Za-z])\W*")
_FIRST = re.compile(r"\W*([A-Z])(?:[.):,]|\s*\n)")
_ARTICLE = r"\s+(?!(?:because|since|as|or|and|for|with)\b)[a-z]"
_NAMED = re.compile(rf"\(([A-Z])\)|{_CALLED}(?i:\s+is)?[\s:\"'*(]*([A-Z])(?![\w'])(?!{_ARTICLE})")
_WRAPPING = " \t\n.,:;!\"'`*()[]\u201c\u201d\u2018\u2019"


def read_letter(answer: str, options: list[str]) -> str | None:
    """Returns the letter that an answer names; None if it names none, or several.

    An answer is the letter alone, begins with it ("B. a red cup", not "A cup on a table"), names it
    ("The answer is (B)"), or is the text of one option.

    Args:
      answer: the model's text.
      options: the texts of the options A, B, …
    """
    letters = LETTERS[: len(options)]
    texts = [_plain(option) for option in options]
    if texts.count(_plain(answer)) == 1:
        return letters[texts.index(_plain(answer))]
    said = {first or second for first, second in _NAMED.findall(answer)}
    if found := _WHOLE.fullmatch(answer) or _FIRST.match(answer):
        said.add(found[1].upper())
    return said.pop() if len(said) == 1 and said <= set(letters) else None


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(_WRAPPING).casefold()


def text(doc: dict[str, Any], kwargs: Any = None) -> str:
    """Returns the question of a row with its options, as a model is asked."""
    del kwargs
    options = [f"{letter}. {doc[letter]}" for letter in _letters(doc)]
    return "\n".join([doc["question"], *options, "Answer with the letter alone."])


def _letters(doc: dict[str, Any]) -> list[str]:
    return [letter for letter in LETTERS if doc.get(letter) is not None]


def visual(doc: dict[str, Any]) -> list[Any]:
    """Returns the images of a row, one or two, in the order that the question speaks of."""
    images = [doc["image_0"], doc["image_1"]]
    return [image.convert("RGB") for image in images if image is not None]


def results(doc: dict[str, Any], answers: list[str]) -> dict[str, dict[str, Any]]:
    """Returns what an answer counts for each metric; `right_in_all` needs all of a sample.

    `accuracy` is over questions. `group` is over samples, all of whose questions have to be right;
    `text` and `image` are the same over those of its questions that ask for a caption and for an
    image, where there are both.
    """
    right = read_letter(answers[0], [doc[letter] for letter in _letters(doc)]) == doc["answer"]
    names = ("question_id", "sample_id", "cluster")
    item = {**{name: doc[name] for name in names}, "right": right}
    found = {"accuracy": {**item, "score": float(right)}}
    if doc["like"] < doc["questions"]:
        found[doc["asks"]] = {**item, "questions": doc["like"]}
    return {**found, "group": {**item, "questions": doc["questions"]}}


def accuracy(items: list[dict[str, Any]]) -> float:
    """Returns the share of questions that were answered right."""
    return sum(item["score"] for item in items) / len(items)


def right_in_all(items: list[dict[str, Any]]) -> float:
    """Returns the share of samples all of whose questions were answered right.

    A sample is left out of which not all questions were asked. The harness takes standard errors
    over the items that have a score, after it has called this: so one item of each sample gets the
    sample's.
    """
    samples: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        samples.setdefault(item["sample_id"], []).append(item)
    whole = [asked for asked in samples.values() if len(asked) == asked[0]["questions"]]
    for asked in whole:
        asked[0]["score"] = float(all(item["right"] for item in asked))
    return sum(asked[0]["score"] for asked in whole) / len(whole) if whole else float("nan")
