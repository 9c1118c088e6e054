"""Facts that only a dataset's author knows: the file for `eqforge card --about`."""

import datetime
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_toml
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import nearest
from eqforge.schemas.dataset.licences import spdx

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_TAG = re.compile(r"\w[\w .:/+-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Author:
    """Who made a dataset.

    Attributes:
      name: of a person or an organisation.
      affiliation: where a person works.
      url: of a page about them.
      is_organisation: whether the name is an organisation's.
    """

    name: str
    affiliation: str = ""
    url: str = ""
    is_organisation: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What the author of a dataset says of it; what is left out is not said, or told from the rows.

    Attributes:
      title: what people call it.
      description: what it is for, in a few sentences.
      authors: who made it.
      contact: where questions go: an address of mail or of a page.
      homepage: URL of its page.
      version: of the dataset, such as `1.0.0`.
      published: the day it was published.
      licence: under which it is passed on: an SPDX identifier such as `CC-BY-4.0`.
      licence_url: the text of a licence that SPDX does not know.
      languages: of its texts, as BCP 47 writes them, such as `en`.
      tags: words by which it is found.
      citation: how to cite it, as BibTeX; by default the paper's whose benchmark it is.
      collection: how its sources were chosen and collected.
      annotation: who looked at the rows, and by which instructions.
      personal_information: what it says of people, and how they were asked.
      biases: who or what it has too much or too little of.
      limitations: what it must not be used for.
      uses: what it is meant to be used for.
      social_impact: what its use may do to people.
      maintenance: who mends errors, and how they are reported.
    """

    title: str = ""
    description: str = ""
    authors: tuple[Author, ...] = ()
    contact: str = ""
    homepage: str = ""
    version: str = ""
    published: datetime.date | None = None
    licence: str = ""
    licence_url: str = ""
    languages: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    citation: str = ""
    collection: str = ""
    annotation: str = ""
    personal_information: str = ""
    biases: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    social_impact: str = ""
    maintenance: str = ""


NOTHING_SAID = About()


def read_about(path: str | Path) -> About:
    """Read an author's facts about a dataset, from a TOML file with the fields of About.

    Raises:
      InputError: the file cannot be read, or a field is unknown or wrong; the message says which.
    """
    said = read_toml(path)
    _check_names(said, About, str(path), "")
    for number, author in enumerate(_tables(said.get("authors"))):
        _check_names(author, Author, str(path), f"authors[{number}].")
    about = decode(msgspec.json.encode(said), About, str(path))
    _check(about, str(path))
    if not about.licence or about.licence_url:
        return about
    if (licence := spdx(about.licence)) is None:
        raise InputError(
            f"{path}: licence: SPDX does not list {about.licence!r}; use an identifier from "
            "https://spdx.org/licenses, such as CC-BY-4.0, or add licence_url"
        )
    return replace(about, licence=licence)


def _tables(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _check_names(said: dict[str, Any], kind: type, file: str, where: str) -> None:
    known = [each.name for each in fields(kind)]
    for name in said:
        if name not in known:
            hint = nearest(name, known) or f"; the known fields are {', '.join(known)}"
            raise InputError(f"{file}: {where}{name}: unknown field{hint}")


def _check(about: About, file: str) -> None:
    urls = [("homepage", about.homepage), ("licence_url", about.licence_url)]
    urls += [(f"authors[{n}].url", author.url) for n, author in enumerate(about.authors)]
    for name, url in urls:
        if url and not re.fullmatch(r"https?://[^\s\"<>]+", url):
            raise InputError(f"{file}: {name}: expected a URL with https://, found {url!r}")
    for language in about.languages:
        if not _LANGUAGE.fullmatch(language):
            raise InputError(
                f"{file}: languages: expected tags such as 'en' or 'pt-BR', found {language!r}"
            )
    for tag in about.tags:
        if not _TAG.fullmatch(tag):
            raise InputError(f"{file}: tags: expected words, found {tag!r}")
    if any(not author.name.strip() for author in about.authors):
        raise InputError(f"{file}: authors: an author has no name; add one")
    if "```" in about.citation:
        raise InputError(f"{file}: citation: expected BibTeX without three backticks")
