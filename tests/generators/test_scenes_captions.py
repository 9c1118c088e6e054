import pytest

from eqforge.generators.scenes.captions import Mode, Phrase, counting_caption, related_caption
from eqforge.generators.scenes.manifest import AssetWords
from eqforge.schemas.records.scenes import Kind, Relation


def phrase(noun: str, *adjectives: str, **words: object) -> Phrase:
    plural = str(words.pop("plural", noun + "s"))
    return Phrase(words=AssetWords(noun=noun, plural=plural, **words), adjectives=adjectives)  # type: ignore[arg-type]


BOX = phrase("gift box", "white", plural="gift boxes", detail="with red straps")
GLOVES = phrase("gloves", "blue", plural="gloves", is_plural=True)
BASKET, BULL = phrase("fabric basket"), phrase("bull", "brown")


def test_paper_mode_writes_the_published_captions() -> None:
    """EqBen, appendix B.4, figure 14; the shortened ones completed."""
    for colour in ("blue", "red"):
        container = phrase("plant container", colour)
        said = related_caption("paper", "attribute", container, "left", BULL)
        assert said == f"The {colour} plant container is on the left side of the brown bull."
    assert counting_caption("paper", BOX, 1, "platform") == (
        "1 white gift box with red straps is on the platform."
    )
    assert counting_caption("paper", BOX, 4, "platform") == (
        "There are 4 white gift box with red straps on the platform."
    )
    assert related_caption("paper", "location", GLOVES, "front", BASKET) == (
        "The blue gloves is in front of the fabric basket."
    )
    assert related_caption("paper", "location", GLOVES, "left", BASKET) == (
        "The blue gloves is on the left hand of the fabric basket."
    )


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("left", "to the left of"),
        ("right", "to the right of"),
        ("front", "in front of"),
        ("behind", "behind"),
    ],
)
def test_corrected_captions_agree_in_number(relation: Relation, words: str) -> None:
    mode: Mode = "corrected"
    kinds: tuple[Kind, ...] = ("attribute", "location")
    for kind in kinds:
        assert related_caption(mode, kind, BULL, relation, BASKET) == (
            f"The brown bull is {words} the fabric basket."
        )
        assert related_caption(mode, kind, GLOVES, relation, BULL) == (
            f"The blue gloves are {words} the brown bull."
        )


@pytest.mark.parametrize(
    ("count", "caption"),
    [
        (1, "One white gift box with red straps is on the table."),
        (2, "Two white gift boxes with red straps are on the table."),
        (10, "Ten white gift boxes with red straps are on the table."),
    ],
)
def test_corrected_counts_are_words_with_plurals(count: int, caption: str) -> None:
    assert counting_caption("corrected", BOX, count, "table") == caption


def test_what_follows_the_noun_may_have_a_plural_too() -> None:
    ribbons = phrase("box", plural="boxes", detail="with a ribbon", plural_detail="with ribbons")
    assert (ribbons.singular, ribbons.plural) == ("box with a ribbon", "boxes with ribbons")
