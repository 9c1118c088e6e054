"""What a dataset's author says, in the file for `eqforge card --about`, and licences by SPDX id."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_toml
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import nearest

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
    """Read an author's facts about a dataset, from a TOML file with the fields of About."""
    table = read_toml(path)
    _check_names(table, About, str(path), "")
    for number, author in enumerate(_tables(table.get("authors"))):
        _check_names(author, Author, str(path), f"authors[{number}].")
    about = decode(msgspec.json.encode(table), About, str(path))
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


def _check_names(table: dict[str, Any], kind: type, file: str, where: str) -> None:
    known = [each.name for each in fields(kind)]
    for name in table:
        if name not in known:
            hint = nearest(name, known) or f"; the known fields are {', '.join(known)}"
            raise InputError(f"{file}: {where}{name}: unknown field{hint}")


def _check(about: About, file: str) -> None:
    urls = [("homepage", about.homepage), ("licence_url", about.licence_url)]
    urls += [(f"authors[{n}].url", author.url) for n, author in enumerate(about.authors)]
    for name, url in urls:
        if url and not re.fullmatch(r"https?://[^\s\"<>]+", url):
            raise InputError(f"{file}: {name}: expected an https:// URL, found {url!r}")
    for language in about.languages:
        if not _LANGUAGE.fullmatch(language):
            raise InputError(
                f"{file}: languages: expected tags such as 'en' or 'pt-BR', found {language!r}"
            )
    for tag in about.tags:
        if not _TAG.fullmatch(tag):
            raise InputError(f"{file}: tags: expected words, found {tag!r}")
    if any(not author.name.strip() for author in about.authors):
        raise InputError(f"{file}: authors: an author has no name; add the name")
    if "```" in about.citation:
        raise InputError(f"{file}: citation: BibTeX must not contain three backticks")


REDISTRIBUTABLE: Final = frozenset(
    (
        # Creative Commons, whole works: whoever passes them on names the author.
        *("CC0-1.0", "CC-PDDC", "CC-PDM-1.0"),
        *(
            f"CC-{kind}-{version}"
            for kind in ("BY", "BY-SA", "BY-NC", "BY-NC-SA")
            for version in ("1.0", "2.0", "2.5", "3.0", "4.0")
        ),
        # Data, and software that makes it.
        *("PDDL-1.0", "ODC-By-1.0", "ODbL-1.0", "CDLA-Permissive-1.0", "CDLA-Permissive-2.0"),
        *("CDLA-Sharing-1.0", "MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause"),
        *("ISC", "0BSD", "Unlicense", "WTFPL"),
    )
)
"""Licences that allow everybody to pass on a work that was cut, scaled or captioned anew.

Those of Creative Commons with ND (no derivatives) are not among them: a crop, a frame of a video
and a reworded caption are derivatives. Those with NC are: they forbid commerce, not passing on, and
who uses the dataset keeps to that. A licence that is not stated allows nothing.
"""

_PUBLIC_DOMAIN: Final = {"publicdomain/zero/1.0": "CC0-1.0", "publicdomain/mark/1.0": "CC-PDM-1.0"}


def spdx(licence: str) -> str | None:
    """Return a licence as SPDX writes it, such as `CC-BY-4.0` for `cc-by-4.0`; None if unknown.

    URLs of Creative Commons and spellings such as "CC BY 4.0" are known too.
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    _, is_found, path = licence.strip().lower().partition("creativecommons.org/")
    place = "/".join(path.split("/")[:3])
    kind, _, version = place.removeprefix("licenses/").partition("/")
    of_url = _PUBLIC_DOMAIN.get(place, f"CC-{kind}-{version}" if is_found else "")
    for text in (licence, of_url, "-".join(licence.split())):
        try:
            return str(canonicalize_license_expression(text))
        except InvalidLicenseExpression:
            continue
    return None


def is_redistributable(licence: str | None) -> bool:
    """Return True if a licence lets everybody pass on the work and its derivatives.

    In an SPDX expression, all parts joined by AND must allow it, or one of those joined by OR.
    Brackets and WITH are not understood and allow nothing.
    """
    known = None if licence is None else spdx(licence)
    if known is None or "(" in known or " WITH " in known:
        return False
    choices = (choice.split(" AND ") for choice in known.split(" OR "))
    return any(all(part in REDISTRIBUTABLE for part in choice) for choice in choices)


FIELDS: Final = ("licence", "license")
ORIGINS: Final = ("origin_0", "origin_1")
ANNOTATION: Final = "annotation"


def annotated(text: Any) -> dict[str, Any]:
    """Return the other fields of a record; none if they are no JSON object."""
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def stated(values: Mapping[str, Any]) -> list[str | None]:
    found = filter(None, (values.get(name) for name in FIELDS))
    return [each if isinstance(each, str) else None for each in found]


def of_record(record: Mapping[str, Any]) -> list[str | None]:
    inner = record.get(ANNOTATION)
    return [*stated(record), *(stated(inner) if isinstance(inner, dict) else [])]


def origins(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [values[name] for name in ORIGINS if isinstance(values.get(name), dict)]


def of_picture(
    row_licences: list[str | None], lineage: list[dict[str, Any]], number: int, count: int
) -> list[str | None]:
    """Return the licences of an image of a row; None for an unstated one.

    Args:
      lineage: of its images; without one, the row's own licences apply to all.
    """
    if lineage and len(lineage) >= count:
        return [*(stated(lineage[number]) or [None]), *row_licences]
    return row_licences or [None]
