"""The dataset card: what a person reads before loading the files."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.visible import code_span, in_markdown, quoted, shortened, visible
from eqforge.schemas.dataset import card_tables, statements
from eqforge.schemas.dataset.hugging_face import WHOLE, Configuration, configurations
from eqforge.schemas.dataset.manifest import Certificate, InputFile, Manifest
from eqforge.schemas.dataset.profile import Facts, Profile
from eqforge.schemas.records.errata import Erratum
from eqforge.schemas.tables.datasets import dataset_type

FILE_NAME: Final = "README.md"
_FENCE: Final = "---"
_HEAD_BYTES: Final = 1 << 20
_TITLE_CHARACTERS: Final = 200

_IMAGE_BY_NAME = "`image` is the picture's file as the source names it; no pictures are included."
_IMAGE_BY_ID = (
    "`image` is the picture's file as the source names it, and `image_id` a key into `images`, "
    "where every distinct picture stands once."
)
_OF_SPLITS = (
    f"The splits are those that the rows name. `{WHOLE}` are rows of a table that names none, or "
    "rows of several splits together; each of these has a configuration of its own as well."
)
_OF_EMPTY = (
    "Tables without rows have no configuration, because `datasets` cannot load them: {}. Other "
    "readers of Parquet can; the files have all columns."
)
_OF_CROISSANT = (
    "`croissant.json` describes the same files in the format Croissant, for `mlcroissant` and for "
    "search engines; in its record sets named `..._joined` the rows have their pictures."
)
_OF_FOLDERS = (
    "`path/to/` stands for your own folders. The same inputs, settings and versions give the same "
    "bytes; `dataset.json` has the digests of all."
)
_SIZES: Final = ((3, "n<1K"), (4, "1K<n<10K"), (5, "10K<n<100K"), (6, "100K<n<1M"))


def dataset_card(profile: Profile) -> str:
    """Returns the card of a dataset as Markdown with the header that Hugging Face reads."""
    manifest = profile.manifest
    splits = profile.facts.splits
    configured = configurations(manifest, splits)
    parts = [
        _header(profile, configured),
        f"# {in_markdown(statements.title(profile))}",
        *map(in_markdown, filter(None, (profile.about.description,))),
        in_markdown(f"{statements.made_by(profile)} {statements.amount(profile)}"),
        card_tables.sizes(manifest),
        _meaning(manifest),
        card_tables.columns(manifest),
        splits_section(profile),
        _books(profile),
        _certificate(manifest),
        _decisions(profile),
        _errata(profile),
        _inputs(profile),
        _list("Uses", (*statements.uses(profile), *filter(None, (profile.about.social_impact,)))),
        _list("Known limits", _limits(profile)),
        _list("People", statements.personal_information(profile)),
        _loading(manifest, configured),
        _again(profile),
        _citation(profile),
        _licence(profile),
        _contact(profile),
        _list("Warnings", manifest.warnings),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def title_of(folder: str) -> str:
    """Returns the title in the head of the card of a dataset; empty if it has none to be read."""
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


def in_folder(card: str, folder: str) -> str:
    """Returns the card of a dataset whose files lie in a folder below the card's."""
    return re.sub(r"^(    path: )(?=data/)", rf"\1{folder}/", card, flags=re.MULTILINE)


def _header(profile: Profile, configured: Iterable[Configuration]) -> str:
    """Returns the metadata, as `huggingface_hub` writes it."""
    from huggingface_hub import DatasetCardData
    from huggingface_hub.utils import yaml_dump

    about = profile.about
    data = DatasetCardData(
        pretty_name=statements.title(profile),
        license=_licence_id(profile),
        license_link=about.licence_url or None,
        language=list(statements.languages(profile)) or None,
        size_categories=size_category(profile.manifest.num_rows("samples")),
        annotations_creators=_annotators(profile),
        tags=[*statements.tags(profile), "croissant"],
        configs=[
            configuration(one.name, [(one.split, one.path)], is_default=number == 0, only=one.only)
            for number, one in enumerate(configured)
        ]
        or None,
    ).to_dict()
    text = yaml_dump(data, sort_keys=False, line_break="\n")
    if visible(text.replace("\n", "")) != text.replace("\n", ""):
        # Writes out what is hidden.
        text = yaml_dump(data, sort_keys=False, line_break="\n", allow_unicode=False)
    return f"---\n{text}---"


def size_category(rows: int) -> str:
    """Returns how the hub calls datasets of so many rows."""
    return next((size for digits, size in _SIZES if len(str(rows)) <= digits), "n>1M")


def _annotators(profile: Profile) -> list[str] | None:
    """Returns who annotated, as the hub writes it; None where somebody else did, or says it."""
    is_known = statements.is_made(profile) and not profile.about.annotation
    return ["machine-generated"] if is_known else None


def configuration(
    name: str, files: Iterable[tuple[str, str]], *, is_default: bool, only: str | None = None
) -> dict[str, Any]:
    """Return a configuration as the hub writes it.

    Args:
      name: its name.
      files: of each split its name, and the pattern of its files.
      is_default: whether it is loaded when nobody names one.
      only: the value of the column `split` that its rows have.
    """
    found: dict[str, Any] = {"config_name": name}
    found |= {"default": True} if is_default else {}
    found |= {"data_files": [{"split": split, "path": path} for split, path in files]}
    return found | ({"filters": [["split", "==", only]]} if only else {})


def _licence_id(profile: Profile) -> str | None:
    """Returns the licence as the hub writes it; None where nobody says under which it is."""
    if not profile.about.licence and not profile.about.licence_url:
        return None
    is_single = re.fullmatch(r"[\w.+-]+", profile.about.licence) and not profile.about.licence_url
    return profile.about.licence.lower() if is_single else "other"


def _tables(manifest: Manifest) -> list[str]:
    """Returns the tables that have files, in the order of the manifest."""
    return [name for name, files in manifest.tables.items() if files]


def _meaning(manifest: Manifest) -> str:
    """Returns what a row of the samples says."""
    kind = dataset_type(manifest.dataset)
    notes = [table.card for table in kind.tables if table.card and manifest.num_rows(table.name)]
    if "image" in kind.table("samples").schema.names:
        notes.append(_IMAGE_BY_ID if "images" in _tables(manifest) else _IMAGE_BY_NAME)
    return " ".join([kind.card, *notes])


def splits_section(profile: Profile) -> str:
    """Returns how many rows each split has; empty where rows name none."""
    rows = [
        f"| {in_markdown(table)} | {in_markdown(split)} | {count:,} |"
        for table, counts in profile.facts.splits.items()
        for split, count in counts.items()
    ]
    head = ["## Splits", "", "| table | split | rows |", "|---|---|---|"]
    return "\n".join([*head, *rows]) if rows else ""


def _books(profile: Profile) -> str:
    lines = ["## What was dropped, and why", ""]
    lines += ["| stage | candidates | kept | rejected |", "|---|---|---|---|"]
    lines += (
        f"| {in_markdown(stage)} | {books.candidates:,} | {books.kept:,} | {books.rejected:,} |"
        for stage, books in profile.manifest.stages.items()
    )
    lines += ["", "| stage | reason | rejected | meaning |", "|---|---|---|---|"]
    lines += (
        f"| {in_markdown(stage)} | {in_markdown(reason)} | {count:,} | {in_markdown(meaning)} |"
        for stage, reason, count, meaning in statements.dropped(profile)
    )
    return "\n".join(lines)


def _certificate(manifest: Manifest) -> str:
    """Returns what was certified of the texts; empty where nothing was."""
    found = manifest.certificate
    if not isinstance(found, Certificate):
        return ""
    lines = ["## What the text alone tells", "", "Its texts were balanced (`balance`)."]
    if found.probes:
        lines[-1] += (
            f" How often classifiers that see no picture are right on {found.rows:,} rows, each "
            f"judged after training on other images, in {found.folds} folds; chance is 50 %, and "
            "the intervals hold 95 %. `eqforge audit` measures the same."
        )
        lines += ["", "| question | classifier | right | interval |", "|---|---|---|---|"]
    lines += (
        f"| {in_markdown(each.question)} | {in_markdown(each.probe)} | {each.accuracy:.2%} | "
        f"{each.low:.2%} to {each.high:.2%} |"
        for each in found.probes
    )
    if found.best is not None:
        best = found.best
        lines += [
            "",
            f"The best of all {len(found.probes)} is {in_markdown(best.probe)}, with "
            f"{best.accuracy:.2%}, turned round where it is wrong more often than right; an "
            f"interval that holds for all of them together is {best.low:.2%} to {best.high:.2%}.",
        ]
    if found.unasked:
        said = "; ".join(in_markdown(each) for each in found.unasked)
        lines += ["", f"Not measured: {said}."]
    return "\n".join(lines)


def _decisions(profile: Profile) -> str:
    """Returns what people who reviewed the dataset decided."""
    found = [each for each in statements.errata(profile) if each.stage != "errata"]
    told = "Samples that people dropped are rows of `rejects`, of the stage `review`; "
    return _told_errata("Decisions of people", "decided by", found, told) if found else ""


def _errata(profile: Profile) -> str:
    """Returns what was found wrong with single samples: how often, and which were not dropped."""
    found = [each for each in statements.errata(profile) if each.stage == "errata"]
    told = "Samples that were dropped are rows of `rejects`, of the stage `errata`; "
    return _told_errata("Errata", "found by", found, told) if found else ""


def _told_errata(heading: str, by: str, errata: Sequence[Erratum], told: str) -> str:
    """Returns a section of errata or decisions: counts, and those that dropped nothing."""
    counts = Counter((each.action, each.reason, each.who) for each in errata)
    lines = [f"## {heading}", "", f"| action | reason | {by} | samples |", "|---|---|---|---|"]
    lines += (
        f"| {action} | {in_markdown(reason)} | {in_markdown(who)} | {count} |"
        for (action, reason, who), count in sorted(counts.items())
    )
    left = [each for each in errata if each.action != "drop"]
    lines += ["", "| sample | action | column | reason | when |", "|---|---|---|---|---|"] * any(
        left
    )
    lines += (
        f"| {in_markdown(each.id)} | {each.action} | {in_markdown(each.column)} | "
        f"{in_markdown(each.reason)} | {each.when} |"
        for each in left
    )
    return "\n".join([*lines, "", f"{told}`dataset.json` lists all, under `errata`."])


def _inputs(profile: Profile) -> str:
    manifest = profile.manifest
    files = [_input(file) for file in manifest.inputs]
    for part in manifest.parts:
        files += ["", f"{in_markdown(part.name)} was made from", "", *map(_input, part.inputs)]
    return "\n".join(["## Made from", "", in_markdown(statements.collection(profile)), "", *files])


def _input(file: InputFile) -> str:
    return f"- {code_span(file.name)}, SHA-256 {code_span(file.sha256)}"


def _limits(profile: Profile) -> Iterator[str]:
    said = [*statements.limitations(profile), *statements.biases(profile)]
    return (text for text in said if text not in profile.manifest.warnings)


def _list(heading: str, texts: Iterable[str]) -> str:
    items = "\n".join(f"- {in_markdown(text)}" for text in texts)
    return f"## {heading}\n\n{items}" if items else ""


def _loading(manifest: Manifest, configured: Iterable[Configuration]) -> str:
    lines = (
        f"{one.name.replace('-', '_')} = "
        f"load_dataset(folder, {quoted(one.name)}, split={quoted(one.split)})"
        for one in configured
    )
    path = quoted(f"path/to/{manifest.dataset}")
    folder = f"folder = {path}  # or a repository of the hub"
    code = "\n".join(["from datasets import load_dataset", "", folder, *lines])
    text = f"## Loading\n\n```python\n{code}\n```\n\n{_OF_SPLITS}\n\n{_OF_CROISSANT}"
    empty = ", ".join(code_span(name) for name in _tables(manifest) if not manifest.num_rows(name))
    return f"{text}\n\n{_OF_EMPTY.format(empty)}" if empty else text


def _again(profile: Profile) -> str:
    if not profile.commands:
        return ""
    code = "\n".join(f"$ {visible(line)}" for line in profile.commands)
    return f"## Make it again\n\n```console\n{code}\n```\n\n{_OF_FOLDERS}"


def _citation(profile: Profile) -> str:
    text = statements.citation(profile)
    if not text:
        return ""
    is_one = text.count("\n@") == 0
    behind = "paper whose benchmark this is" if is_one else "papers whose benchmarks these are"
    whose = "" if profile.about.citation else f"The {behind}:\n\n"
    return f"## Citation\n\n{whose}```bibtex\n{text}\n```"


def _licence(profile: Profile) -> str:
    about = profile.about
    lines = ["## Licence", ""]
    if about.licence or about.licence_url:
        said = in_markdown(about.licence or "Its licence")
        said = f"[{said}]({about.licence_url})" if about.licence_url else said
        lines += [f"The dataset as a whole is passed on under {said}.", ""]
    for name, licence in statements.texts_licences(profile).items():
        whose = f" of {in_markdown(name)}" if profile.facts.parts else ""
        said = f"The source states the licence of the texts{whose}: {in_markdown(licence)}."
        lines += [said, ""]
    lines += licence_table(profile.facts)
    lines += [
        "The pictures and captions keep the licences of their sources. Check them before you pass "
        "the files on."
    ]
    return "\n".join(lines)


def licence_table(facts: Facts) -> list[str]:
    """Returns the table of the licences that the sources state; nothing where none could."""
    if facts.parts:
        return _licences_by_part(facts)
    lines = ["| licence that the sources state | sources |", "|---|---|"]
    lines += (
        f"| {in_markdown(name) or 'none'} | {count} |" for name, count in facts.licences.items()
    )
    return [*lines, ""] if facts.licences else []


def _licences_by_part(facts: Facts) -> list[str]:
    """Returns the same table of a combined dataset, whose parts may state licences or not."""
    lines = ["| part | licence that the sources state | sources |", "|---|---|---|"]
    for part, found in facts.parts.items():
        said = found.licences or {"": found.sources}
        lines += (
            f"| {in_markdown(part)} | {in_markdown(name) or 'none'} | {count} |"
            for name, count in said.items()
        )
    return [*lines, ""]


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
