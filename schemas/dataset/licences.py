"""Licences by SPDX identifier, and which of them allow redistribution."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

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

_CREATIVE_COMMONS: Final = "creativecommons.org/"
_PUBLIC_DOMAIN: Final = {"publicdomain/zero/1.0": "CC0-1.0", "publicdomain/mark/1.0": "CC-PDM-1.0"}


def spdx(licence: str) -> str | None:
    """Return a licence as SPDX writes it, such as `CC-BY-4.0` for `cc-by-4.0`; None if unknown.

    URLs of Creative Commons and spellings such as "CC BY 4.0" are known too.
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    _, is_found, path = licence.strip().lower().partition(_CREATIVE_COMMONS)
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


def of_record(said: Mapping[str, Any]) -> list[str | None]:
    inner = said.get(ANNOTATION)
    return [*stated(said), *(stated(inner) if isinstance(inner, dict) else [])]


def origins(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lineage of images in an annotation."""
    return [values[name] for name in ORIGINS if isinstance(values.get(name), dict)]


def of_picture(
    own: list[str | None], lineage: list[dict[str, Any]], number: int, count: int
) -> list[str | None]:
    """Return the licences of an image of a row; None for an unstated one.

    Args:
      lineage: of its images; without one, the row's own licences apply to all.
    """
    if lineage and len(lineage) >= count:
        return [*(stated(lineage[number]) or [None]), *own]
    return own or [None]
