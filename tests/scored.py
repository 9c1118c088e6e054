"""A scorer asked in one go, as no command does: they prepare, encode and match step by step."""

from collections.abc import Sequence

from PIL import Image

from eqforge.models.scorer import IndexPairs, Matches, Picture, Scorer


def image_of(picture: Picture) -> Image.Image:
    """Returns the picture as Pillow has it."""
    assert picture.pixels is not None
    return Image.fromarray(picture.pixels)


def score_pictures(
    scorer: Scorer, pictures: Sequence[Picture], captions: Sequence[str], pairs: IndexPairs
) -> Matches:
    """Scores pairs of pictures and captions, all three steps in one go and one batch.

    Raises:
      ValueError: an image cannot be used.
    """
    prepared = [scorer.prepare(picture) for picture in pictures]
    return scorer.match(scorer.encode_images(prepared), captions, pairs)
