"""The question of EqBen's pilot study, and the four orders in which it is asked."""

import itertools
from dataclasses import dataclass
from typing import Final

from eqforge.core.errors import InputError

QUESTION: Final = (
    "There are two images (left and right). Now you have two captions: caption 1: {caption_1}; "
    "caption 2: {caption_2}. Please indicate which caption corresponds to the left image and which "
    "caption corresponds to the right one. The answer should follow the format: "
    '"#index for the left image; #index for the right image". For example, "1;2" represents that '
    "caption 1 corresponds to image left."
)
"""The paper's template. Source: EqBen (Wang et al. 2023), section 5.5."""

FIELDS = ("{caption_1}", "{caption_2}")

Order = tuple[int, int]
ORDERS: Final[tuple[Order, Order]] = ((0, 1), (1, 0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrangement:
    """How a pair is shown.

    Attributes:
      images: which image of the pair is left and which right.
      captions: which caption of the pair is called 1 and which 2.
    """

    images: Order
    captions: Order

    @property
    def truth(self) -> tuple[int, int]:
        """The correct answer: the caption numbers of the left and of the right image."""
        left, right = (self.captions.index(image) + 1 for image in self.images)
        return left, right

    @property
    def names(self) -> tuple[str, str]:
        """The orders of images and captions, each `01` or `10`."""
        return "".join(map(str, self.images)), "".join(map(str, self.captions))


ARRANGEMENTS: Final = tuple(
    Arrangement(images=images, captions=captions)
    for images, captions in itertools.product(ORDERS, ORDERS)
)
"""All four, sorted: by the order of images, then of captions."""


def ask(template: str, captions: tuple[str, str], arrangement: Arrangement) -> str:
    """Returns the question about a pair.

    Args:
      template: contains {caption_1} and {caption_2}; nothing else in it is replaced.
      captions: those of the pair; caption i describes image i.
      arrangement: how the pair is shown.
    """
    first, second = (captions[number] for number in arrangement.captions)
    before, _, rest = template.partition(FIELDS[0])
    between, _, after = rest.partition(FIELDS[1])
    return f"{before}{first}{between}{second}{after}"


def check_template(template: str) -> str:
    """Returns the template if it has each placeholder exactly once, {caption_1} first.

    Raises:
      InputError: it does not.
    """
    places = [template.find(field) for field in FIELDS]
    if [template.count(field) for field in FIELDS] != [1, 1] or places != sorted(places):
        raise InputError(
            "--question: expected a text with {caption_1} and behind it {caption_2}, each once; "
            f"found {template!r}"
        )
    return template
