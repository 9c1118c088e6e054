"""Find the benchmark of a record: its form, or the nearest form if none matches.

A record may have a form's fields and yet belong to a benchmark with more fields: SugarCrepe++ is
SugarCrepe with a second true caption. The benchmark with more fields wins.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import names_of, shown
from eqforge.core.visible import series
from eqforge.sources.benchmarks.form import Entry, Form
from eqforge.sources.benchmarks.published import FORMS

_DEPTH: Final = 5
"""EqBen's records are three levels below the root of the file."""
_WHOLE: Final = "this looks like a file for"
_SIMILAR: Final = 60.0
"""Similarity of names, up to 100, from which they count as similar."""
_SIGNS: Final = re.compile(r"[\W_]+")
_ANSWERS: Final = frozenset(("Text_Q0", "Text_Q1", "Image_Q0", "Image_Q1"))
_OF_ANSWERS: Final = (
    ". This is VisMin's vqa_solution.csv, which contains no captions. To import VisMin's pairs, "
    "pass its Hugging Face folder to `eqforge import vismin`."
)


def form_of(forms: Iterable[Form], record: Entry) -> Form:
    value = record.node.value
    place = record.node.place
    for form in forms:
        has_fields = isinstance(value, dict) and form.fields <= value.keys()
        if not (has_fields if form.is_array is None else form.is_array(value)):
            continue
        if form.folders and not (set(record.place.split("/")[-2:-1]) & set(form.folders)):
            raise InputError(
                f"{record.place}: this file is not in a folder named "
                f"{series(map(repr, form.folders), 'or')}. Pass the folder that contains both. "
                f"This file's fields: {describe_record(value, forms)}"
            )
        if form.joined is None and (other := _owner(form.fields, _names(value))) is not None:
            benchmark, fields = other
            more = ", ".join(sorted(fields - form.fields))
            advice = f"; if the file is your own, specify the column with --columns kind={more}"
            raise InputError(
                f"{place}: the record also has {more}, so it looks like a record for "
                f"`eqforge import {benchmark}`"
                f"{advice if _is_own(form) and not benchmark.startswith('own-') else ''}"
            )
        return form
    naming = _naming(forms, value) if any(map(_is_own, forms)) else ""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        naming = "; each line must be one record; a file with a JSON array must end in .json"
    found = f"{'only ' if _names(value) else ''}{describe_record(value, forms)}"
    raise InputError(f"{place}: expected {_wanted(forms)}; found {found}{naming}")


def _wanted(forms: Iterable[Form]) -> str:
    """Name the records of some forms; forms that differ in one field are named together."""
    named = [form.fields for form in forms if not form.array]
    shared = frozenset[str]().union(*named[:1]).intersection(*named)
    if len(named) > 1 and all(len(fields - shared) == 1 for fields in named):
        own = series((repr(name) for fields in named for name in fields - shared), "or")
        wanted = [f"the fields {series(map(repr, sorted(shared)))}, plus {own}"]
    else:
        wanted = [f"the fields {series(map(repr, sorted(fields)))}" for fields in named]
    return ", or ".join([*(form.array for form in forms if form.array), *wanted])


def describe_record(value: Any, expected: Iterable[Form] = ()) -> str:
    """Name a record's fields, or its beginning, and the nearest other benchmark."""
    names = sorted(_names(value), key=str)
    return f"{names_of(names) if names else shown(value)}{_nearest(value, expected)}"


def _naming(forms: Iterable[Form], value: Any) -> str:
    """Explain how to name your own columns, unless they are all a benchmark's."""
    missing = sorted(set[str]().union(*(form.fields for form in forms)) - _names(value))
    if _names(value) >= _ANSWERS or _WHOLE in _nearest(value) or not _names(value) or not missing:
        return ""
    return f"; if your columns have other names, map them with --columns {missing[0]}=YOURS"


def _names(value: Any) -> frozenset[str]:
    return frozenset(value) if isinstance(value, dict) else frozenset()


@functools.lru_cache(maxsize=1_000)
def _owner(fields: frozenset[str], names: frozenset[str]) -> tuple[str, frozenset[str]] | None:
    """Return the benchmark whose records have all of `fields` and more, all among the names."""
    others = (
        (benchmark, form.fields)
        for benchmark in FORMS
        for form in FORMS[benchmark]
        if fields < form.fields <= names
    )
    return max(others, key=lambda other: len(other[1]), default=None)


def _is_own(form: Form) -> bool:
    return "kind" in form.optional


def _nearest(value: Any, expected: Iterable[Form] = ()) -> str:
    """Return a hint at the benchmark whose records most resemble a value, or an empty string.

    Equal field names count first, then the first member of each level, then similar names.
    """
    if _names(value) >= _ANSWERS:
        return _OF_ANSWERS
    for like in (_likeness, _resemblance):
        for part in _first_parts(value):
            likeness = {
                benchmark: max(like(form, part) for form in FORMS[benchmark]) for benchmark in FORMS
            }
            if (most := max(likeness.values())) > 0:
                best = [
                    f"`eqforge import {name}`"
                    for name, share in likeness.items()
                    if share == most and FORMS[name] is not expected
                ]
                if not best:
                    return ""
                likely = "the closest match is" if len(best) == 1 else "the closest matches are"
                return f"; {_WHOLE if most > 1 else likely} {series(best, 'or')}"
    return ""


def _first_parts(value: Any) -> Iterator[Any]:
    for _ in range(_DEPTH):
        yield value
        members = value.values() if isinstance(value, dict) else value
        if not isinstance(value, dict | list) or not members:
            return
        value = next(iter(members))


def _likeness(form: Form, value: Any) -> float:
    """Return the share of fields that a form and a value have in common; over 1 for all."""
    if form.is_array is not None:
        return 2.0 * form.is_array(value)
    names = _names(value)
    return len(form.fields & names) / (len(form.fields | names) or 1) + (form.fields <= names)


def _resemblance(form: Form, value: Any) -> float:
    """Return the share of a form's fields that a value has under similar names, in [0, 1).

    It is 0 if only one field has a similar name.
    """
    names = sorted({_SIGNS.sub("", str(name).lower()) for name in _names(value)})
    if form.is_array is not None or not names:
        return 0.0
    from rapidfuzz import fuzz  # only where something is wrong

    fields = {_SIGNS.sub("", field.lower()) for field in form.fields}
    pairs = ((fuzz.ratio(one, other), one, other) for one in fields for other in names)
    matches: dict[str, float] = {}
    for ratio, one, other in sorted(pairs, reverse=True):
        if ratio >= _SIMILAR and matches.keys().isdisjoint((one, f" {other}")):
            matches |= {one: ratio / 101, f" {other}": 0.0}
    count = len(matches) // 2
    return sum(matches.values()) / (len(fields) + len(names) - count) if count > 1 else 0.0
