"""Reads the captions of scenes, whoever wrote them, and compares them with what is claimed.

This is no part of writing captions and shares none of its code: it looks for the words of places,
numbers, colours, sizes and materials in the text, and for the nouns of the assets in its order.
"""

import re
from collections.abc import Iterator, Mapping

from eqforge.generators.scenes.claims import COMPARED, names_of, step_size
from eqforge.generators.scenes.manifest import AssetWords, Trim
from eqforge.generators.scenes.palette import PALETTE
from eqforge.generators.scenes.view import camera_axes
from eqforge.schemas.records.scenes import Claim, Relation, SceneObject, ScenePair, SceneSpec

_PLACES: Mapping[str, Relation] = {
    r"facing left": "facing left",
    r"facing right": "facing right",
    r"facing the camera": "facing the camera",
    r"facing away": "facing away",
    r"standing upright": "upright",
    r"lying on (?:its side|their sides)": "lying",
    r"larger than": "larger",
    r"lighter than": "lighter",
    r"nearer to": "nearer",
    r"more\b.*\bon the (?:left|right) than": "more",
    r"lined up from left to right": "row",
    r"between": "between",
    r"(?:to|on) the left(?: side| hand)? of": "left",
    r"(?:to|on) the right(?: side| hand)? of": "right",
    r"in front of": "front",
    r"behind": "behind",
    r"next to": "near",
    r"far from": "far",
    r"on": "on",
    r"in": "in",
    r"under": "under",
}
"""Words that say where the target is, right behind the verb; the first that are found count."""

_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTED = re.compile(rf"(?:there are )?(\d+|{'|'.join(_NUMBERS)})\b", re.IGNORECASE)
_COLOURS = re.compile(rf"\b(?:{'|'.join(PALETTE)})\b")
_SIDE = re.compile(r"\bon the (left|right)\b")
_ROW = re.compile(r", the | and the ")
_SUBJECT = re.compile(r"(?:There are )?(.*?) (?:is|are|on|has|have) ")
_TRIM = re.compile(
    rf"The (?P<thing>.+) ha(?:s|ve) (?P<article>a (?![aeiou])|an (?=[aeiou]))?"
    rf"(?P<colour>{'|'.join(PALETTE)}) (?P<part>.+)\."
)


def misread(pair: ScenePair, words: Mapping[str, AssetWords] | None = None) -> Iterator[str]:
    """Yields what a caption says that its scene's claim does not.

    Colours are compared where the scene gives the object one of the palette, not its own.

    Args:
      pair: the scenes with their captions and claims.
      words: what assets are called, by their ids; the nouns of others are not compared.
    """
    for number, (caption, claim) in enumerate(zip(pair.captions, pair.claims, strict=True)):
        scene, other = pair.scenes[number], pair.scenes[1 - number]
        if claim.relation is None and claim.trim is None:
            found = counted(caption)
            if found != len(claim.copies):
                yield f"caption {number} counts {found}, and its picture has {len(claim.copies)}"
        if claim.trim is not None and (place := place_in(caption)) is not None:
            yield f"caption {number} says {place!r}, and its claim nothing of a place"
        if claim.relation is not None and (place := place_in(caption)) != claim.relation:
            yield f"caption {number} says {place!r}, and its claim {claim.relation!r}"
        if claim.trim is not None and (wrong := _wrong_trim(caption, claim, scene, words or {})):
            yield f"caption {number} {wrong}"
        if wrong := _wrong_words(caption, claim, scene, other, words or {}):
            yield f"caption {number} {wrong}"
        if (noun := _missing_noun(caption, claim, scene, words or {})) is not None:
            yield f"caption {number} does not name the {noun} where its claim does"


def counted(caption: str) -> int | None:
    """Returns the number with which a caption begins; None if there is none."""
    matched = _COUNTED.match(caption)
    if matched is None:
        return None
    word = matched[1].lower()
    return _NUMBERS.index(word) if word in _NUMBERS else int(word)


def place_in(caption: str) -> Relation | None:
    """Returns where a caption says that its subject is; None if it does not."""
    found = (
        place for words, place in _PLACES.items() if re.search(rf"\b(?:is|are) {words}\b", caption)
    )
    return next(found, None)


def _missing_noun(
    caption: str, claim: Claim, scene: SceneSpec, words: Mapping[str, AssetWords]
) -> str | None:
    """Returns the first noun that is not where a claim has it in the caption."""
    assets = {item.name: item.asset for item in scene.objects}
    last = () if claim.reference is None else (claim.reference, *claim.others)
    if claim.relation in ("nearer", "more"):
        last = last[:1] if claim.relation == "nearer" else ("",)  # the others are "the one" or none
    named = (claim.target, *(last or ("support",)))
    start = 0
    for known in (words[assets[name]] for name in named if assets.get(name, "") in words):
        found = re.compile(rf"\b(?:{_nouns(known)})\b").search(caption, start)
        if found is None:
            return known.noun
        start = found.end()
    return None


def _nouns(words: AssetWords) -> str:
    return "|".join(map(re.escape, (words.plural, words.noun)))


def _wrong_words(
    caption: str, claim: Claim, scene: SceneSpec, other: SceneSpec, words: Mapping[str, AssetWords]
) -> str | None:
    if claim.relation in COMPARED:
        return _wrong_side(caption, claim, scene)
    here, there = ({item.name: item for item in each.objects} for each in (scene, other))
    matched = _SUBJECT.match(caption)
    subject = [] if matched is None else matched[1].split()
    target, twin = here[claim.target], there.get(claim.target)
    if claim.relation == "row":
        named = [here[name] for name in names_of(claim)]
        return _wrong_in_row([phrase.lower() for phrase in _ROW.split(caption)], named)
    if claim.relation in ("upright", "lying") and claim.relation != target.posture:
        return f"says {claim.relation} of what is {target.posture}"
    if target.material is not None:
        return None if target.material in subject else f"does not name {target.material}"
    colour = _palette_name(target)
    if target.colour is None and target.asset in words:
        colour = words[target.asset].colour
    if colour is not None and colour not in subject:
        return f"does not name {colour}, the colour of its subject"
    if twin is not None and twin.scale != target.scale:
        size = "large" if target.scale > twin.scale else "small"
        return None if size in subject else f"does not call its subject {size}"
    return None


def _wrong_trim(
    caption: str, claim: Claim, scene: SceneSpec, words: Mapping[str, AssetWords]
) -> str | None:
    """Returns what is wrong with the colour of a part, or with what it is called."""
    item = next(each for each in scene.objects if each.name == claim.target)
    names = [name for name, colour in PALETTE.items() if colour in dict(item.trims).values()]
    said = _TRIM.fullmatch(caption)
    if said is None or [said["colour"]] != names:
        return f"does not say that a part is {' or '.join(names) or 'painted'}"
    if said["part"] != claim.trim:
        return f"does not name the {claim.trim}"
    if item.asset not in words:
        return None
    known = words[item.asset]
    if re.fullmatch(rf"(?:\w+ )?(?:{_nouns(known)})", said["thing"]) is None:
        return f"says more than a colour of the {known.noun}"
    parts = {known.trims.get(part) for part, _ in item.trims}
    expected = Trim(noun=said["part"], is_plural=said["article"] is None)
    return None if parts == {expected} else f"does not name its {said['part']} as its words do"


def _wrong_side(caption: str, claim: Claim, scene: SceneSpec) -> str | None:
    """Returns what is wrong with the sides of two things that a caption compares."""
    if not {*names_of(claim)} <= {item.name for item in scene.objects}:
        return "speaks of what is not in its scene"
    if step_size(scene, claim) <= 0:
        return f"says {claim.relation} of what is not"
    assert claim.reference is not None
    first, second = (
        (claim.reference, claim.others[0])
        if claim.relation == "nearer"
        else (claim.target, claim.reference)
    )
    sides = ["left", "right"] if is_left(scene, first, second) else ["right", "left"]
    said = _SIDE.findall(caption)
    return None if said == sides else f"says {said} of what stands {sides}"


def _wrong_in_row(phrases: list[str], named: list[SceneObject]) -> str | None:
    if len(phrases) != len(named):
        return f"names {len(phrases)} things where {len(named)} stand"
    for phrase, item in zip(phrases, named, strict=True):
        colour, own = _COLOURS.search(phrase), _palette_name(item)
        if own is not None and (colour is None or colour[0] != own):
            return f"names {phrase!r} where a {own} thing stands"
    return None


def _palette_name(item: SceneObject) -> str | None:
    return next((name for name, colour in PALETTE.items() if colour == item.colour), None)


def is_left(scene: SceneSpec, first: str, second: str) -> bool:
    """Whether one object stands to the left of another as the camera sees it."""
    places = {item.name: item.position for item in scene.objects}
    right = camera_axes(scene.camera)[0]
    return float(right @ places[first]) < float(right @ places[second])
