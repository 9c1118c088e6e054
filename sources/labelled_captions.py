"""Captions of one image, labelled true or false: the input of the lints.

A `TextPair` always has a negative. Two of eqforge's own datasets have rows without one: training
captions, where none could be made, and perturbed captions, which never have one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.manifest import FILE_NAME
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.datasets import dataset_with
from eqforge.sources.hugging_face import row_folder
from eqforge.sources.simat import Triplet, read_simat_captions, read_transfos, read_triplets
from eqforge.sources.text_pairs import TextPair, read_text_pairs

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset

_SIMAT_CAPTIONS = ("captions.txt", "triplets.csv")
_TRAINING = ("caption_id", "image", "role", "text")
_PERTURBED = ("sample_id", "image", "caption", "perturbed_caption", "applied")
_FOILS = ("sample_id", "image", "caption", "hard_negative")
_BESIDE = ("hard_positive", "box")
_FILES = (".json", ".jsonl", ".csv", ".tsv")
_COMPARED = (("caption", "hard_negative"), ("caption_0", "caption_1"))


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledCaptions:
    """A true caption of an image, and captions made from it.

    Attributes:
      record_id: unique in its file.
      perturbed: the true caption after a perturbation, which may garble words and grammar.
      box: the part of the image that the captions describe; None for the whole. Captions of one
        part say nothing about other parts.
      is_made: whether the negative was made from the positive; else it is another image's caption.
    """

    record_id: str
    image: str
    positive: str
    negative: str | None = None
    hard_positive: str | None = None
    perturbed: str | None = None
    box: CornerBox | None = None
    is_made: bool = True

    def finding_field(self, field: str) -> str:
        return "other_caption" if field == "negative" and not self.is_made else field


def label_pair(pair: TextPair) -> LabelledCaptions:
    return LabelledCaptions(
        record_id=pair.pair_id,
        image=pair.image,
        positive=pair.positive,
        negative=pair.negative,
        hard_positive=pair.hard_positive,
        box=pair.box,
        is_made=pair.design == "one_image",
    )


def read_labelled_captions(path: str | Path) -> Iterator[LabelledCaptions]:
    """Yield the captions of any file of text pairs, or of any dataset of captions.

    Training captions have one row per text, anywhere in the dataset, and are joined in memory.
    Unchanged perturbed captions are skipped. In SIMAT's files, `captions.txt` and `triplets.csv`
    give each triplet's caption, and `transfos.csv` the captions of region and target of each query;
    the three have to be in one folder.
    """
    path = Path(path)
    if path.name in _SIMAT_CAPTIONS or path.match("transfos*.csv"):
        return _simat(path)
    if is_dataset(path):
        from eqforge.schemas.dataset.reader import open_samples

        _check_no_files(path)
        opened = open_samples(str(path))
        opened.check_samples()
        names = set(opened.columns("samples"))
        for columns, read in ((_TRAINING, _training), (_PERTURBED, _perturbed)):
            if names.issuperset(columns):
                dataset = open_samples(str(path), dataset_with("samples", columns))
                return read(dataset.rows("samples", columns))
        if "question" in names:
            raise InputError(
                f"{path} contains questions, not captions. To see which questions can be answered "
                "from the text alone, run `eqforge audit`."
            )
        if not any(names.issuperset(columns) for columns in _COMPARED):
            raise InputError(f"{path}: the samples have no captions to compare")
    return map(label_pair, read_text_pairs(path))


def dataset_captions(dataset: "Dataset") -> Iterator[LabelledCaptions]:
    read = _reader(dataset)
    if read is None:
        raise InputError(f"{dataset.folder}: no caption is an edited version of another caption")
    return read()


def why_not_linted(dataset: "Dataset") -> str:
    if _reader(dataset) is not None:
        return ""
    if not dataset.manifest.num_rows("samples"):
        return "it has no samples"
    if "caption_1" in dataset.columns("samples"):
        return (
            "each caption is true of its own image, so no caption is false; to compare the texts, "
            "run `eqforge lint`"
        )
    return "no caption is an edited version of another caption"


def _reader(dataset: "Dataset") -> Callable[[], Iterator[LabelledCaptions]] | None:
    names = set(dataset.columns("samples"))
    for columns, read in ((_TRAINING, _training), (_PERTURBED, _perturbed), (_FOILS, _foils)):
        if names.issuperset(columns):
            beside = [name for name in _BESIDE if read is _foils and name in names]
            return lambda: read(dataset.rows("samples", [*columns, *beside]))
    return None


def is_dataset(path: Path) -> bool:
    """Return True for an eqforge dataset folder, False for one of Hugging Face's."""
    return path.is_dir() and row_folder(path) is None


def _check_no_files(path: Path) -> None:
    """Check that a folder holds no published files, each of which has its own ids."""
    if (path / FILE_NAME).exists():
        return
    if found := sorted(file.name for file in path.iterdir() if file.suffix in _FILES):
        raise InputError(
            f"{path} is a folder of files, not a dataset; pass the files themselves, such as "
            f"{path / found[0]}"
        )


def is_training(path: Path) -> bool:
    if not is_dataset(path):
        return False
    from eqforge.schemas.dataset.reader import open_samples

    return set(open_samples(str(path)).columns("samples")).issuperset(_TRAINING)


def _simat(path: Path) -> Iterator[LabelledCaptions]:
    triplets = read_triplets(path.with_name("triplets.csv"))
    order = tuple(dict.fromkeys(triplets.values()))
    captions = read_simat_captions(path.with_name("captions.txt"), order)
    if path.name in _SIMAT_CAPTIONS:
        for triplet, caption in captions.items():
            yield LabelledCaptions(record_id=triplet.triplet_id, image="", positive=caption)
        return
    yield from _simat_queries(path, triplets, captions)


def _simat_queries(
    path: Path, triplets: Mapping[str, Triplet], captions: Mapping[Triplet, str]
) -> Iterator[LabelledCaptions]:
    for query in read_transfos(path):
        region, part, target = query.region_id, query.part, query.target
        source = triplets.get(region)
        if source is None or source.changed(part, target) not in captions:
            raise InputError(
                f"{path.name}: the query {region}/{part}/{target}: the region or the target "
                "triplet is missing from triplets.csv"
            )
        yield LabelledCaptions(
            record_id=f"{region}/{part}/{target}",
            image=region,
            positive=captions[source],
            negative=captions[source.changed(part, target)],
            is_made=False,
        )


def _foils(rows: Iterable[dict[str, Any]]) -> Iterator[LabelledCaptions]:
    for row in rows:
        yield LabelledCaptions(
            record_id=row["sample_id"],
            image=row["image"],
            positive=row["caption"],
            negative=row["hard_negative"],
            hard_positive=row.get("hard_positive"),
            box=None if row.get("box") is None else CornerBox(**row["box"]),
        )


def _training(rows: Iterable[dict[str, Any]]) -> Iterator[LabelledCaptions]:
    captions: dict[str, dict[str, str]] = {}
    for row in rows:
        by_role = captions.setdefault(row["caption_id"], {"image": row["image"]})
        by_role[row["role"]] = row["text"]
    for caption_id, by_role in captions.items():
        if "original" in by_role:
            yield LabelledCaptions(
                record_id=caption_id,
                image=by_role["image"],
                positive=by_role["original"],
                negative=by_role.get("hard_negative"),
                hard_positive=by_role.get("hard_positive"),
            )


def _perturbed(rows: Iterable[dict[str, Any]]) -> Iterator[LabelledCaptions]:
    for row in rows:
        if row["applied"]:
            yield LabelledCaptions(
                record_id=row["sample_id"],
                image=row["image"],
                positive=row["caption"],
                perturbed=row["perturbed_caption"],
            )
