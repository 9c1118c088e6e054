"""What is said anew of an export that leaves rows out: how much is here, of which licences.

The author's words, and how the whole was made, stay as the dataset's own documents say them.
"""

import re
from typing import Final

from eqforge.core.visible import counted, in_markdown
from eqforge.schemas.dataset import card, statements
from eqforge.schemas.dataset.profile import Facts, Profile, read_facts
from eqforge.transforms.export.target import Export

_SIZE: Final = re.compile(r"^size_categories:.*\n(?:- .*\n)*", re.MULTILINE)
_UNCHANGED: Final = re.compile(r"^Of the rows of `samples`, .*\n\n?", re.MULTILINE)
_SPLITS: Final = re.compile(r"^## Splits\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LICENCES: Final = re.compile(
    r"^\| (?:part \| )?licence that the sources state \| sources \|\n(?:\|.*\n)*\n?", re.MULTILINE
)
_HEADING: Final = re.compile(r"^(?=## )|\Z", re.MULTILINE)


def profile_of_part(export: Export) -> Profile:
    """Returns what is known of the rows that are here."""
    dataset = export.dataset
    has_samples = "samples" in dataset.manifest.tables
    facts = read_facts(dataset) if has_samples else Facts()
    return Profile(manifest=dataset.manifest, facts=facts, pictures=export.count_pictures())


def left_out(export: Export) -> str:
    """Returns what is said of the rows that were left out for their licences."""
    said = "; ".join(f"{name}: {rows:,}" for name, rows in export.left_out.items())
    return (
        "Only rows are here whose sources state licences that allow to pass them on. Left out, by "
        f"licence: {said or 'none'}."
    )


def step(export: Export) -> str:
    """Returns how many rows the export kept, as a last step behind those of the build."""
    kept = export.dataset.manifest.num_rows(export.settings.table)
    whole = kept + sum(export.left_out.values())
    return (
        f"Export: {kept:,} of {counted(whole, 'rows')} of {export.settings.table} were kept, by "
        "the licences of their sources."
    )


def card_of_part(export: Export, text: str) -> str:
    """Returns the card of the whole with what differs of the rows that are here."""
    profile = profile_of_part(export)
    rows = export.dataset.manifest.num_rows(export.settings.table)
    text = _SIZE.sub(f"size_categories: {card.size_category(rows)}\n", text, count=1)
    text, _ = statements.with_amount(text, profile)
    text = _UNCHANGED.sub("", text, count=1)
    splits = card.splits_section(profile)
    text = _SPLITS.sub(lambda _: f"{splits}\n\n" if splits else "", text, count=1)
    licences = "".join(f"{line}\n" for line in card.licence_table(profile.facts))
    text = _LICENCES.sub(lambda _: licences, text, count=1)
    whole = "Stages, rejects and errata below are those of the whole dataset."
    told = f"{in_markdown(left_out(export))} {whole}"
    return _HEADING.sub(lambda _: f"{told}\n\n", text, count=1)
