"""The check of `eqforge verify` that edited photographs changed only where they were allowed to."""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import sha256_hex
from eqforge.core.ticker import ticked
from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.generated.masks import read_numbers


class _Mask(msgspec.Struct, frozen=True):
    lock: bool = False


class _Parameters(msgspec.Struct, frozen=True):
    mask: _Mask | None = None


def check_locks(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every locked pair whose images differ outside its mask.

    Every image is decoded once. Of what lies outside a mask only the digest is kept, and masks in
    their encoded form.
    """
    locked = dict(_locked_pairs(dataset))
    if not locked:
        return
    masks = _encoded_masks(dataset, {mask for _, mask in locked.values()})
    users = defaultdict(list)
    for sample, (images, mask) in locked.items():
        for image in set(images):
            users[image].append((sample, mask))
    outside: dict[str, str] = {}
    rows = dataset.rows("images", ["image_id", "image"])
    for row in ticked(rows, dataset.manifest.num_rows("images"), "locks", "pictures"):
        if not (wanted := users.pop(row["image_id"], [])):
            continue
        pixels = read_pixels(row["image"]["bytes"])
        for sample, mask in wanted:
            numbers = read_numbers(masks[mask])
            if numbers.shape != pixels.shape[:2]:
                yield f"sample {sample}: its mask has another size than {row['image_id']}"
            elif (found := sha256_hex(pixels[numbers == 0].tobytes())) != outside.setdefault(
                sample, found
            ):
                yield f"sample {sample}: its images differ outside the mask, and it says `lock`"


def _locked_pairs(dataset: Dataset) -> Iterator[tuple[str, tuple[tuple[str, str], str]]]:
    """Yields the id of every locked pair with its images and its mask."""
    if not {"mask_0_id", "source_sha256"} <= set(dataset.columns("samples")):
        return  # no edited photographs
    names = ["sample_id", "image_0_id", "image_1_id", "mask_0_id", "generation"]
    for row in dataset.rows("samples", names):
        said = msgspec.json.decode(row["generation"]["parameters"], type=_Parameters)
        if row["mask_0_id"] is not None and said.mask is not None and said.mask.lock:
            images = (row["image_0_id"], row["image_1_id"])
            yield row["sample_id"], (images, row["mask_0_id"])


def _encoded_masks(dataset: Dataset, wanted: set[str]) -> dict[str, bytes]:
    rows = dataset.rows("masks", ["mask_id", "image"])
    return {row["mask_id"]: row["image"]["bytes"] for row in rows if row["mask_id"] in wanted}
