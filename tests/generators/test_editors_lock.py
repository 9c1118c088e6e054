"""What may not change is the original's, and what an editor is told names the change."""

import numpy as np
import pytest

from eqforge.generators.editors.canvas import composite, grow
from eqforge.generators.editors.instructions import find_change, make_instruction
from eqforge.transforms.text.perturb import tagger_of

RNG = np.random.default_rng(0)
ORIGINAL, EDITED = RNG.integers(0, 256, (2, 20, 30, 3), dtype=np.uint8)
MASK = np.zeros((20, 30), dtype=np.bool_)
MASK[5:15, 8:28] = True


@pytest.mark.parametrize("feather_px", [0, 1, 4, 50])
def test_outside_the_mask_nothing_changes_however_wide_the_rim(feather_px: int) -> None:
    found = composite(ORIGINAL, EDITED, MASK, feather_px)
    assert (found[~MASK] == ORIGINAL[~MASK]).all()
    assert found.dtype == np.uint8


def test_the_edit_comes_in_by_the_distance_from_the_rim() -> None:
    black, white = np.zeros_like(ORIGINAL), np.full_like(ORIGINAL, 255)
    assert (composite(black, white, MASK, feather_px=0)[MASK] == 255).all()
    row = composite(black, white, MASK, feather_px=3)[10, 6:14, 0]
    assert row.tolist() == [0, 0, 64, 128, 191, 255, 255, 255]  # quarters of 255
    everywhere = np.ones_like(MASK)
    assert (composite(black, white, everywhere, feather_px=3) == 255).all()  # no rim to fade from


def test_a_mask_of_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="the mask have different sizes"):
        composite(ORIGINAL, EDITED, MASK[:-1], feather_px=0)


def test_a_mask_grows_by_a_distance() -> None:
    dot = np.zeros((9, 9), dtype=np.bool_)
    dot[4, 4] = True
    assert grow(dot, 2).sum() == 13  # the pixels of a disc of radius 2
    assert (grow(dot, 0) == dot).all()
    assert not grow(np.zeros_like(dot), 3).any()


@pytest.mark.parametrize(
    ("caption", "target", "instruction", "things"),
    [
        ("A red car.", "A blue car.", "replace the red car with a blue car", ("red car",)),
        ("Dogs run on a road.", "Cats run on a road.", "replace the dogs with cats", ("dogs",)),
        ("A man holds an umbrella.", "A man holds a kite.", "replace the umbrella with a kite",
         ("umbrella",)),
        ("A man with a hat", "A man", "remove the hat", ("hat",)),
        ("A man", "A man with a hat", "add a hat", ("man",)),
        ("A cup on a table", "A cup under a table",
         "change the picture so that it shows: A cup under a table", ("cup", "table")),
        ("A boy swings his bat.", "A boy swings his racket.",
         "replace his bat with his racket", ("bat",)),
        ("Several cars on a road", "Several boats on a road",
         "replace several cars with several boats", ("cars",)),
        ("a dog", "the dog", "change the picture so that it shows: the dog", ("dog",)),
        ("a dog chasing a cat", "a cat chasing a dog",
         "change the picture so that it shows: a cat chasing a dog", ("dog", "cat")),
    ],
)  # fmt: skip
def test_an_instruction_names_what_changes(
    caption: str, target: str, instruction: str, things: tuple[str, ...]
) -> None:
    first, second = tagger_of(None).analyse([caption, target])
    change = find_change(caption, target, (first, second))
    assert make_instruction(target, change) == instruction
    assert change.things == things


def test_without_a_tagger_the_words_themselves_are_looked_for() -> None:
    change = find_change("红色的狗", "红色的猫", None)
    assert change.things == ("狗",)
    assert make_instruction("红色的猫", change) == "change the picture so that it shows: 红色的猫"
