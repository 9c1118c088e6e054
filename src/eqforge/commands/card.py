"""`eqforge card`: rewrite the documents next to a finished dataset."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from eqforge.core.shell import Command
from eqforge.core.visible import visible

if TYPE_CHECKING:
    from eqforge.schemas.dataset.about import About
    from eqforge.schemas.dataset.profile import Profile
    from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Write a dataset's card (README.md) and croissant.json, with facts that you provide."""

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    about: Path | None = None
    """TOML file of facts about the dataset. Every key is optional. The keys are title, description,
    authors, contact, homepage, version, published, licence (SPDX) or licence_url, languages, tags
    and citation. The keys for responsible use are collection, annotation, personal_information,
    biases, limitations, uses, social_impact and maintenance."""

    output: str | None = None
    """Folder or URL for the two files (default: the dataset's folder)."""


def profile_of(dataset: "Dataset", about: "About") -> "Profile":
    from eqforge.pipelines import stage_of
    from eqforge.pipelines.base.recipe import commands_of
    from eqforge.schemas.dataset.profile import Profile, read_facts
    from eqforge.schemas.records.stages import Stage

    manifest = dataset.manifest
    known = ((name, stage_of(manifest, name)) for name in manifest.stages)
    return Profile(
        manifest=manifest,
        facts=read_facts(dataset),
        stages=[Stage(name, stage.reasons) for name, stage in known if stage is not None],
        commands=tuple(commands_of(manifest)),
        about=about,
    )


def card_command(arguments: Arguments) -> None:
    for url in write_card(arguments):
        print(visible(url))


def write_card(arguments: Arguments) -> list[str]:
    from eqforge.schemas.dataset.about import NOTHING_SAID, read_about
    from eqforge.schemas.dataset.documents import check_replaced, write_documents
    from eqforge.schemas.dataset.reader import open_dataset

    about = NOTHING_SAID if arguments.about is None else read_about(arguments.about)
    dataset = open_dataset(arguments.dataset)
    output = (arguments.output or dataset.folder).rstrip("/")
    if output != dataset.folder:
        check_replaced(output)
    return write_documents(profile_of(dataset, about), output)


main = Command(
    "eqforge card", Arguments, card_command, example="eqforge card out/eq-video --about about.toml"
)
