"""Whether a protocol can be answered from what reviewers are shown."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.evaluation.report.items import Item, Pane
from eqforge.evaluation.review.protocols import PROTOCOLS, Need, Protocol
from eqforge.schemas.dataset.reader import Dataset


def check_fits(
    protocol: Protocol, items: Collection[Item], pictures: Collection[str], dataset: Dataset
) -> None:
    """Checks that some items are what a protocol asks about; one of a user's own always fits.

    Args:
      protocol: what reviewers are asked.
      items: what they are shown.
      pictures: ids of the pictures that there are.
      dataset: what is reviewed.

    Raises:
      InputError: no item is; the message says what would fit.
    """
    if protocol.unit != "samples":
        _check_pictures(items, pictures, dataset)
        return
    if _fits(protocol, items, pictures):
        return
    decided = [(name, each) for name, each in PROTOCOLS.items() if each.unit == "samples"]
    fitting = [name for name, each in decided if _fits(each, items, pictures)]
    if not fitting:
        raise InputError(
            f"--protocol {protocol.name}: nothing to review in {dataset.folder} has a picture; "
            f"{dataset.remedy}, or write a protocol of your own"
        )
    others = ", ".join(f"--protocol {name}" for name in fitting)
    raise InputError(
        f"--protocol {protocol.name}: asks about pairs of pictures with a caption each, and "
        f"nothing to review in {dataset.folder} is one; what fits is {others}, or one of your own"
    )


def _check_pictures(items: Collection[Item], pictures: Collection[str], dataset: Dataset) -> None:
    """Checks that nothing is asked about a picture that is not there."""
    for item in items:
        if any(pane.image_id not in pictures for pane in item.panes):
            raise InputError(
                f"{dataset.folder}: {shown(item.id)} has no picture to look at; {dataset.remedy}"
            )


def _fits(protocol: Protocol, items: Collection[Item], pictures: Collection[str]) -> bool:
    fits = _FITS[protocol.needs]
    return any(fits([pane for pane in item.panes if pane.image_id in pictures]) for item in items)


_FITS: Final[Mapping[Need, Callable[[Sequence[Pane]], bool]]] = {
    "": lambda panes: True,
    "pictures": lambda panes: bool(panes),
    "pairs": lambda panes: len(panes) == 2 and all(pane.texts for pane in panes),
}
"""Whether an item fits, by those of its pictures that there are."""
