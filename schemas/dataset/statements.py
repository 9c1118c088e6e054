"""Statements about a dataset in words, for its card and its Croissant description.

Everything follows from the manifest, the rows and the author's facts. If eqforge cannot know
something, such as whether people were asked, the sentence says so. For a combined dataset, the
statements cover its parts.
"""

import re
from collections.abc import Iterator
from typing import Any

from eqforge.core.visible import counted, series
from eqforge.schemas.dataset.manifest import run_of
from eqforge.schemas.dataset.profile import UNSTATED, Profile, names_of, of_parts, unit_of_sources
from eqforge.schemas.records.judgements import Erratum
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import DATASETS, dataset_type
from eqforge.schemas.tables.description import KnownDataset

_FACES = {
    "paper": "face_recognition's detector, as EqBen did",
    "cnn": "face_recognition's neural detector",
    "yunet": "the neural detector YuNet",
    "either": "dlib's or OpenCV's detector",
    "both": "dlib's and OpenCV's detectors together",
}
_AMOUNT = re.compile(r"(\bby eqforge\b.{0,200} )It has \d[^.\n]{0,2000}\.$", re.MULTILINE)
"""The amount, after the maker; see made_by and amount."""
_PARTS = ("only", "limit", "sample")
_REVIEW = "review"
"""Stage of human decisions; see transforms/dataset/errata.py."""


def title(profile: Profile) -> str:
    return profile.about.title or profile.manifest.dataset


def description(profile: Profile) -> str:
    known = _known(profile)
    summary = profile.about.description or (known.summary if known else "")
    return " ".join(filter(None, (summary, made_by(profile), amount(profile))))


def made_by(profile: Profile) -> str:
    manifest, parts = profile.manifest, profile.parts()
    version = manifest.versions.get("eqforge", "")
    if manifest.dataset in BENCHMARKS:
        return f"Imported by eqforge {version}.".replace(" .", ".")
    how = f"Combined from {', '.join(names_of(parts))}" if parts else "Built"
    mode = f" in {manifest.mode} mode" if has_mode(profile) else ""
    return f"{how} by eqforge {version}{mode}.".replace("  ", " ").replace(" .", ".")


def has_mode(profile: Profile) -> bool:
    parts = profile.parts()
    return any(map(has_mode, parts)) if parts else profile.manifest.dataset not in BENCHMARKS


def amount(profile: Profile) -> str:
    manifest, shown = profile.manifest, profile.pictures
    first = ("samples",) if "samples" in manifest.tables or not manifest.tables else ()
    tables = [name for name in manifest.tables if name not in ("samples", "rejects")]
    counts = {name: manifest.num_rows(name) for name in (*first, *tables)}
    counts |= {"images": shown} if "images" in counts and shown is not None else {}
    rows = series(counted(count, name) for name, count in counts.items())
    sources = counted(profile.facts.sources, unit_of_sources(profile))
    return f"It has {rows} from {sources}." if profile.facts.sources else f"It has {rows}."


def with_amount(text: str, profile: Profile) -> tuple[str, int]:
    """Replace the amount in a card or description; also return whether it had one."""
    return _AMOUNT.subn(lambda found: f"{found[1]}{amount(profile)}", text, count=1)


def is_made(profile: Profile) -> bool:
    parts = profile.parts()
    return all(map(is_made, parts)) if parts else profile.manifest.dataset in DATASETS


def is_generated(profile: Profile) -> bool:
    """Return True if the images were made for the dataset, not photographed."""
    if parts := profile.parts():
        return all(map(is_generated, parts))
    columns = dataset_type(profile.manifest.dataset).table("samples").schema.names
    return "generation" in columns


def collection(profile: Profile) -> str:
    return profile.about.collection or " ".join(of_parts(profile, _collection))


def _collection(profile: Profile) -> Iterator[str]:
    if is_generated(profile):
        yield (
            "Programs generated the images and captions from specifications, which the rows "
            "contain; nothing was collected from people."
        )
        return
    known = DATASETS.get(profile.manifest.dataset)
    sources = known.made_from.replace("`", "") if known else "the files listed in its manifest"
    yield (
        f"Derived from existing data ({sources}); eqforge collected no data and does not know "
        "how the sources were collected."
    )


def dropped(profile: Profile) -> Iterator[tuple[str, str, int, str]]:
    for stage, counts in profile.manifest.stages.items():
        for reason, count in counts.reasons.items():
            yield stage, reason, count, profile.meaning(stage, reason)


def missing(profile: Profile) -> str:
    counts = [f"{reason} ({stage}) {count:,}" for stage, reason, count, _ in dropped(profile)]
    if not counts:
        return ""
    return f"Candidates that did not become samples are in the rejects table: {', '.join(counts)}."


def steps(profile: Profile) -> Iterator[str]:
    for stage, counts in profile.manifest.stages.items():
        yield f"Stage {stage}: {counts.kept:,} of {counts.candidates:,} candidates were kept."


def errata(profile: Profile) -> list[Erratum]:
    part_errata = (erratum for part in profile.manifest.parts for erratum in part.errata)
    return sorted({*profile.manifest.errata, *part_errata})


def annotation(profile: Profile) -> str:
    if profile.about.annotation:
        return profile.about.annotation
    reviews = [*_reviewed(profile)] if profile.parts() else []
    return " ".join((*of_parts(profile, _annotation), *reviews))


def _annotation(profile: Profile) -> Iterator[str]:
    is_reviewed = _REVIEW in profile.manifest.stages
    if not is_made(profile):
        yield "The rows were imported; eqforge does not know who wrote or checked them."
    elif is_reviewed:
        yield "Rules and filters made and selected the rows, and people reviewed some of them."
    else:
        yield (
            "Rules and filters made and selected the rows; no person has checked them for eqforge."
        )
    yield from _reviewed(profile)


def _reviewed(profile: Profile) -> Iterator[str]:
    if (counts := profile.manifest.stages.get(_REVIEW)) is not None:
        yield (
            f"Reviewers dropped {counts.rejected:,} of {counts.candidates:,} rows (stage "
            f"{_REVIEW}); it is not known how many of the other rows they saw."
        )


def personal_information(profile: Profile) -> Iterator[str]:
    if profile.about.personal_information:
        yield profile.about.personal_information
    yield from of_parts(profile, _people)


def _people(profile: Profile) -> Iterator[str]:
    policy = _find(profile.manifest.config, "face_policy")
    if not profile.manifest.num_rows("images"):
        yield (
            "The dataset contains no images; the texts were not searched for names or other "
            "personal data."
        )
    elif policy in _FACES:
        refused = sum(n for _, reason, n, _ in dropped(profile) if reason.startswith("face"))
        yield (
            f"Images in which {_FACES[policy]} found a face were rejected ({refused:,} images). "
            "Detectors miss small, turned and covered faces, so some faces may remain."
        )
    elif profile.manifest.dataset == "eq-kubric":
        yield "The images are rendered scenes of objects and show no people."
    elif is_generated(profile):
        yield "A model drew the images; they may resemble people in its training data."
    else:
        yield "No face detector was used, so images may show people who can be recognised."


def biases(profile: Profile) -> Iterator[str]:
    yield from profile.about.biases
    yield from of_parts(profile, _biases)
    if profile.manifest.num_rows("rejects"):
        cause = "Filters selected the rows" if is_made(profile) else "Not every record became a row"
        yield f"{cause}; the rejects table lists what was left out, and why."


def _biases(profile: Profile) -> Iterator[str]:
    manifest = profile.manifest
    if not is_generated(profile):
        yield "The dataset has the biases of its sources, which eqforge does not know."
    if manifest.config.get("language") == "en":
        yield "Captions that are not English were rejected."
    if _find(manifest.config, "face_policy") in _FACES:
        yield "Images with faces were rejected, so people are rarer than in the sources."


def limitations(profile: Profile) -> Iterator[str]:
    yield from profile.about.limitations
    yield from of_parts(profile, _defects)
    yield from of_parts(profile, _selection)
    if profile.parts():
        yield from _selection(profile)
    manifest = profile.manifest
    if manifest.unchanged:
        yield (
            f"In {counted(manifest.unchanged, 'rows')} of the samples table, words_changed is "
            "false. Without a changed word, a sample tests nothing."
        )
    if not profile.about.annotation:
        yield annotation(profile)
    yield from manifest.warnings


def _defects(profile: Profile) -> Iterator[str]:
    if profile.manifest.dataset in BENCHMARKS:
        yield (
            "The rows are unchanged, including their authors' mistakes; eqforge lint lists defects."
        )
    elif profile.manifest.mode == "paper":
        yield "Paper mode keeps the defects of the published dataset; eqforge lint lists them."


def _selection(profile: Profile) -> Iterator[str]:
    run = run_of(profile.manifest.config)
    values = {name: run.get(name) for name in _PARTS}
    limits = [
        f"{name} {value}" for name, value in values.items() if value not in (None, [], "100%")
    ]
    if limits:
        yield f"This is only a part of the whole dataset: {', '.join(limits)}."


def uses(profile: Profile) -> tuple[str, ...]:
    return profile.about.uses or (dataset_type(profile.manifest.dataset).use,)


def tools(profile: Profile) -> Iterator[str]:
    if version := profile.manifest.versions.get("eqforge"):
        yield f"eqforge {version}"


def citation(profile: Profile) -> str:
    """Return BibTeX: the author's own, or the papers behind the dataset."""
    known = (_known(each) for each in profile.parts() or [profile])
    papers = dict.fromkeys(each.citation for each in known if each and each.citation)
    return (profile.about.citation or "\n\n".join(papers)).strip()


def texts_licences(profile: Profile) -> dict[str, str]:
    """Return the licences of benchmarks' texts as their sources state them, by benchmark."""
    names = names_of(profile.parts() or [profile])
    known = {name: BENCHMARKS[name] for name in names if name in BENCHMARKS}
    return {name: each.licence for name, each in known.items() if each.licence}


def licences(profile: Profile) -> Iterator[str]:
    for name, licence in texts_licences(profile).items():
        yield f"{licence}: the texts{f' of {name}' if profile.parts() else ''}"
    for licence, count in profile.facts.licences.items():
        stated = "not stated" if licence == UNSTATED else licence
        yield f"{stated}: {counted(count, 'sources')}"


def tags(profile: Profile) -> tuple[str, ...]:
    names = (profile.manifest.dataset, *names_of(profile.parts()))
    standard_tags = ("eqforge", *names, "minimal-pairs", "vision-language")
    return tuple(dict.fromkeys((*profile.about.tags, *standard_tags)))


def languages(profile: Profile) -> tuple[str, ...]:
    is_english = all(
        is_generated(part) or part.manifest.config.get("language") == "en"
        for part in profile.parts() or [profile]
    )
    return profile.about.languages or (("en",) if is_english else ())


def _known(profile: Profile) -> KnownDataset | None:
    name = profile.manifest.dataset
    return DATASETS.get(name) or BENCHMARKS.get(name)


def _find(values: Any, name: str) -> Any:
    if not isinstance(values, dict):
        return None
    if name in values:
        return values[name]
    found = (_find(value, name) for value in values.values())
    return next((value for value in found if value is not None), None)
