"""The dataset card: a README for people who load the files."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.visible import code_span, in_markdown, quoted, shortened, visible
from eqforge.schemas.dataset import statements
from eqforge.schemas.dataset.hugging_face import WHOLE, Configuration, configurations
from eqforge.schemas.dataset.manifest import Certificate, InputFile, Manifest
from eqforge.schemas.dataset.profile import Facts, Profile
from eqforge.schemas.tables.datasets import dataset_type, meanings, table_type

FILE_NAME: Final = "README.md"
_FENCE: Final = "---"
_HEAD_BYTES: Final = 1 << 20
_TITLE_CHARACTERS: Final = 200

_IMAGE_BY_NAME = "`image` is the image file name in the source; no images are included."
_IMAGE_BY_ID = (
    "`image` is the image file name in the source, and `image_id` is a key into `images`, which "
    "has one row per distinct image."
)
_OF_SPLITS = (
    f"The splits come from the rows. `{WHOLE}` contains all rows of a table without splits, or the "
    "rows of several splits together; each of these splits also has its own configuration."
)
_OF_EMPTY = (
    "Tables without rows have no configuration, because `datasets` cannot load them: {}. Other "
    "Parquet readers can; the files have all columns."
)
_OF_CROISSANT = (
    "`croissant.json` describes the same files in the format Croissant, for `mlcroissant` and for "
    "search engines; its record sets named `..._joined` contain rows with their images."
)
_OF_FOLDERS = (
    "Replace `path/to/` with your own folders. The same inputs, settings and versions produce "
    "the same bytes; `dataset.json` contains all digests."
)
_SIZES: Final = ((3, "n<1K"), (4, "1K<n<10K"), (5, "10K<n<100K"), (6, "100K<n<1M"))


def dataset_card(profile: Profile) -> str:
    manifest = profile.manifest
    splits = profile.facts.splits
    configured = configurations(manifest, splits)
    limits = [*statements.limitations(profile), *statements.biases(profile)]
    commands = "\n".join(
        visible(line) if line.startswith("#") else f"$ {visible(line)}" for line in profile.commands
    )
    parts = [
        _header(profile, configured),
        f"# {in_markdown(statements.title(profile))}",
        *map(in_markdown, filter(None, (profile.about.description,))),
        in_markdown(f"{statements.made_by(profile)} {statements.amount(profile)}"),
        _sizes(manifest),
        _meaning(manifest),
        _columns(manifest),
        splits_section(profile),
        _books(profile),
        _certificate(manifest),
        _errata(profile, heading="Decisions by reviewers", by="decided by", is_of_people=True),
        _errata(profile, heading="Errata", by="found by", is_of_people=False),
        _inputs(profile),
        _list("Uses", (*statements.uses(profile), *filter(None, (profile.about.social_impact,)))),
        _list("Known limits", (text for text in limits if text not in manifest.warnings)),
        _list("People", statements.personal_information(profile)),
        _loading(manifest, configured),
        f"## Rebuild it\n\n```console\n{commands}\n```\n\n{_OF_FOLDERS}" if commands else "",
        _citation(profile),
        _licence(profile),
        _contact(profile),
        _list("Warnings", manifest.warnings),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def title_of(folder: str) -> str:
    try:
        with storage.open_below(folder, FILE_NAME) as stream:
            first, *head = stream.read(_HEAD_BYTES).decode(errors="replace").splitlines() or [""]
    except (OSError, InputError):  # there is none, or a link in its place
        return ""
    lines = itertools.takewhile(lambda line: line != _FENCE, head) if first == _FENCE else ()
    line = next((line for line in lines if line.startswith("pretty_name:")), None)
    if line is None:
        return ""
    from huggingface_hub import DatasetCard  # takes long to import

    try:
        title = DatasetCard(f"{_FENCE}\n{line}\n{_FENCE}\n").data.to_dict().get("pretty_name")
    except Exception:  # YAML can make its reader raise anything
        return ""
    return shortened(visible(title), _TITLE_CHARACTERS) if isinstance(title, str) else ""


def _header(profile: Profile, configured: Iterable[Configuration]) -> str:
    from huggingface_hub import DatasetCardData
    from huggingface_hub.utils import yaml_dump

    about = profile.about
    # Left out if others annotated the rows, or if the author names the annotators.
    is_annotated = statements.is_made(profile) and not about.annotation
    licence: str | None = "other"
    if not about.licence and not about.licence_url:
        licence = None
    elif re.fullmatch(r"[\w.+-]+", about.licence) and not about.licence_url:
        licence = about.licence.lower()
    data = DatasetCardData(
        pretty_name=statements.title(profile),
        license=licence,
        license_link=about.licence_url or None,
        language=list(statements.languages(profile)) or None,
        size_categories=size_category(profile.manifest.num_rows("samples")),
        annotations_creators=["machine-generated"] if is_annotated else None,
        tags=[*statements.tags(profile), "croissant"],
        configs=[
            configuration(one.name, [(one.split, one.path)], is_default=number == 0, only=one.only)
            for number, one in enumerate(configured)
        ]
        or None,
    ).to_dict()
    text = yaml_dump(data, sort_keys=False, line_break="\n")
    if visible(text.replace("\n", "")) != text.replace("\n", ""):
        # Writes out hidden characters.
        text = yaml_dump(data, sort_keys=False, line_break="\n", allow_unicode=False)
    return f"---\n{text}---"


def size_category(rows: int) -> str:
    return next((size for digits, size in _SIZES if len(str(rows)) <= digits), "n>1M")


def configuration(
    name: str, files: Iterable[tuple[str, str]], *, is_default: bool, only: str | None = None
) -> dict[str, Any]:
    """Return a configuration in the hub's format.

    Args:
      files: of each split its name, and the pattern of its files.
      is_default: whether the hub loads it by default.
      only: the value of the column `split` that its rows have.
    """
    found: dict[str, Any] = {"config_name": name}
    found |= {"default": True} if is_default else {}
    found |= {"data_files": [{"split": split, "path": path} for split, path in files]}
    return found | ({"filters": [["split", "==", only]]} if only else {})


def _tables(manifest: Manifest) -> list[str]:
    return [name for name, files in manifest.tables.items() if files]


def _meaning(manifest: Manifest) -> str:
    kind = dataset_type(manifest.dataset)
    notes = [table.card for table in kind.tables if table.card and manifest.num_rows(table.name)]
    if "image" in kind.table("samples").schema.names:
        notes.append(_IMAGE_BY_ID if "images" in _tables(manifest) else _IMAGE_BY_NAME)
    return " ".join([kind.card, *notes])


def splits_section(profile: Profile) -> str:
    rows = [
        (table, split, f"{count:,}")
        for table, counts in profile.facts.splits.items()
        for split, count in counts.items()
    ]
    table = _table(("table", "split", "rows"), rows)
    return "\n".join(["## Splits", "", *table]) if rows else ""


def _table(head: Sequence[str], rows: Iterable[Iterable[object]], line: str = "") -> list[str]:
    shown = (" | ".join(in_markdown(str(cell)) for cell in row) for row in rows)
    return [
        f"| {' | '.join(head)} |",
        line or "|---" * len(head) + "|",
        *(f"| {r} |" for r in shown),
    ]


def _sizes(manifest: Manifest) -> str:
    rows = (
        (
            name,
            f"{manifest.num_rows(name):,}",
            f"{len(files):,}",
            f"{sum(file.num_bytes for file in files):,}",
        )
        for name, files in manifest.tables.items()
    )
    lines = _table(("table", "rows", "files", "bytes"), rows, "|---|---:|---:|---:|")
    if manifest.unchanged is not None:
        sentence = f"Rows of `samples` whose `words_changed` is false: {manifest.unchanged:,}."
        lines += ["", sentence]
    return "\n".join(lines)


def _columns(manifest: Manifest) -> str:
    kind = table_type(manifest.dataset, "samples")
    if kind is None:
        return ""
    descriptions = meanings(kind.record)
    lines = ["## Columns of `samples`", "", "| column | meaning |", "|---|---|"]
    for name in kind.schema.names:
        meaning = descriptions.get(name, "").replace("|", r"\|")
        lines += [f"| {code_span(name)} | {meaning} |"]
    return "\n".join(lines)


def _books(profile: Profile) -> str:
    stages = profile.manifest.stages.items()
    counts = ((s, f"{b.candidates:,}", f"{b.kept:,}", f"{b.rejected:,}") for s, b in stages)
    dropped = ((s, reason, f"{n:,}", why) for s, reason, n, why in statements.dropped(profile))
    return "\n".join(
        [
            "## What was rejected, and why",
            "",
            *_table(("stage", "candidates", "kept", "rejected"), counts),
            "",
            *_table(("stage", "reason", "rejected", "meaning"), dropped),
        ]
    )


def _certificate(manifest: Manifest) -> str:
    found = manifest.certificate
    if not isinstance(found, Certificate):
        return ""
    lines = [
        "## What the text alone predicts",
        "",
        "The texts were balanced (`--balance text`), so that text alone should not reveal which "
        "caption is true.",
    ]
    if found.probes:
        lines[-1] += (
            " The table shows how often classifiers that see no image are right on "
            f"{found.rows:,} rows. Each row is judged after training on other images, in "
            f"{found.folds} folds. Chance is 50%; the intervals are 95% confidence intervals. "
            "`eqforge audit` measures the same."
        )
        rows = (
            (p.question, p.probe, f"{p.accuracy:.2%}", f"{p.low:.2%} to {p.high:.2%}")
            for p in found.probes
        )
        lines += ["", *_table(("question", "classifier", "right", "interval"), rows)]
    if (best := found.best) is not None:
        lines += [
            "",
            f"The best of all {len(found.probes)} is {in_markdown(best.probe)}, with "
            f"{best.accuracy:.2%}; a classifier that is wrong more often than right counts "
            f"inverted. An interval that is valid for all classifiers together is {best.low:.2%} "
            f"to {best.high:.2%}.",
        ]
    if found.unasked:
        lines += ["", f"Not measured: {'; '.join(map(in_markdown, found.unasked))}."]
    return "\n".join(lines)


def _errata(profile: Profile, *, heading: str, by: str, is_of_people: bool) -> str:
    """Return the number of errata, and the errata that did not drop samples."""
    stage = "review" if is_of_people else "errata"
    found = [e for e in statements.errata(profile) if (e.stage != "errata") == is_of_people]
    if not found:
        return ""
    counts = sorted(Counter((each.action, each.reason, each.who) for each in found).items())
    lines = _table(("action", "reason", by, "samples"), ((*key, count) for key, count in counts))
    if left := [each for each in found if each.action != "drop"]:
        rows = ((each.id, each.action, each.column, each.reason, each.when) for each in left)
        lines += ["", *_table(("sample", "action", "column", "reason", "when"), rows)]
    whose = "people dropped" if is_of_people else "were dropped"
    note = (
        f"Samples that {whose} are in the table `rejects`, with the stage `{stage}`. "
        "`dataset.json` lists all decisions under `errata`."
    )
    return "\n".join([f"## {heading}", "", *lines, "", note])


def _inputs(profile: Profile) -> str:
    manifest = profile.manifest
    lines = ["## Made from", "", in_markdown(statements.collection(profile)), ""]
    lines += map(_input, manifest.inputs)
    for part in manifest.parts:
        lines += ["", f"{in_markdown(part.name)} was made from:", "", *map(_input, part.inputs)]
    return "\n".join(lines)


def _input(file: InputFile) -> str:
    return f"- {code_span(file.name)}, SHA-256 {code_span(file.sha256)}"


def _list(heading: str, texts: Iterable[str]) -> str:
    items = "\n".join(f"- {in_markdown(text)}" for text in texts)
    return f"## {heading}\n\n{items}" if items else ""


def _loading(manifest: Manifest, configured: Iterable[Configuration]) -> str:
    lines = (
        f"{one.name.replace('-', '_')} = "
        f"load_dataset(folder, {quoted(one.name)}, split={quoted(one.split)})"
        for one in configured
    )
    folder = f"folder = {quoted(f'path/to/{manifest.dataset}')}  # or a repository on the hub"
    code = "\n".join(["from datasets import load_dataset", "", folder, *lines, *_joined(manifest)])
    text = f"## Loading\n\n```python\n{code}\n```\n\n{_OF_SPLITS}\n\n{_OF_CROISSANT}"
    empty = ", ".join(code_span(name) for name in _tables(manifest) if not manifest.num_rows(name))
    return f"{text}\n\n{_OF_EMPTY.format(empty)}" if empty else text


def _joined(manifest: Manifest) -> Iterator[str]:
    """Yield code lines that find the images of samples; none if samples have no images."""
    kind = table_type(manifest.dataset, "samples")
    column = (
        next((name for name, to in kind.references.items() if to == "images"), "") if kind else ""
    )
    if column and manifest.num_rows("samples") and manifest.num_rows("images"):
        yield 'row_of = {name: row for row, name in enumerate(images["image_id"])}'
        yield f"names = samples[:3][{quoted(column)}]"
        yield 'pictures = [images[row_of[name]]["image"] for name in names if name]'


def _citation(profile: Profile) -> str:
    text = statements.citation(profile)
    if not text:
        return ""
    is_one = text.count("\n@") == 0
    behind = (
        "paper that introduced this benchmark"
        if is_one
        else "papers that introduced these benchmarks"
    )
    whose = "" if profile.about.citation else f"The {behind}:\n\n"
    return f"## Citation\n\n{whose}```bibtex\n{text}\n```"


def _licence(profile: Profile) -> str:
    about = profile.about
    lines = ["## Licence", ""]
    if about.licence or about.licence_url:
        label = in_markdown(about.licence or "Its licence")
        label = f"[{label}]({about.licence_url})" if about.licence_url else label
        lines += [f"The dataset as a whole is distributed under {label}.", ""]
    for name, licence in statements.texts_licences(profile).items():
        whose = f" of {in_markdown(name)}" if profile.facts.parts else ""
        sentence = f"The source states the licence of the texts{whose}: {in_markdown(licence)}."
        lines += [sentence, ""]
    lines += licence_table(profile.facts)
    lines += [
        "The images and captions keep the licences of their sources. Check the licences before "
        "you redistribute the files."
    ]
    return "\n".join(lines)


def licence_table(facts: Facts) -> list[str]:
    """Return the table of the licences that the sources state; empty if none can state one.

    Some parts of a combined dataset may state licences and others not.
    """
    head = ("licence that the sources state", "sources")
    if facts.parts:
        parts = ((part, f.licences or {"": f.sources}) for part, f in facts.parts.items())
        rows = ((part, name or "none", n) for part, found in parts for name, n in found.items())
        return [*_table(("part", *head), rows), ""]
    licence_rows = ((name or "none", count) for name, count in facts.licences.items())
    return [*_table(head, licence_rows), ""] if facts.licences else []


def _contact(profile: Profile) -> str:
    about = profile.about
    lines = [
        f"- {in_markdown(', '.join(filter(None, (author.name, author.affiliation))))}"
        for author in about.authors
    ]
    lines += [f"- Questions: {in_markdown(about.contact)}"] if about.contact else []
    lines += [f"- Page: <{about.homepage}>"] if about.homepage else []
    lines += [f"- Maintenance: {in_markdown(about.maintenance)}"] if about.maintenance else []
    return "\n".join(["## Authors and contact", "", *lines]) if lines else ""
