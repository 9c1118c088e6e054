"""Licences by their SPDX identifiers, and which of them allow that a work is passed on."""

from typing import Final

REDISTRIBUTABLE: Final = frozenset(
    (
        # Creative Commons, whole works: whoever passes them on names the author.
        *("CC0-1.0", "CC-PDDC", "CC-PDM-1.0"),
        *(f"CC-BY-{version}" for version in ("1.0", "2.0", "2.5", "3.0", "4.0")),
        *(f"CC-BY-SA-{version}" for version in ("1.0", "2.0", "2.5", "3.0", "4.0")),
        *(f"CC-BY-NC-{version}" for version in ("1.0", "2.0", "2.5", "3.0", "4.0")),
        *(f"CC-BY-NC-SA-{version}" for version in ("1.0", "2.0", "2.5", "3.0", "4.0")),
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
    """Returns a licence as SPDX writes it, such as `CC-BY-4.0` for `cc-by-4.0`; None if unknown.

    URLs of Creative Commons are known too, and "CC BY 4.0" as people write it.

    Args:
      licence: an SPDX expression, or one of the other forms.
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    for text in (licence, _of_creative_commons(licence), "-".join(licence.split())):
        try:
            return str(canonicalize_license_expression(text))
        except InvalidLicenseExpression:
            continue
    return None


def _of_creative_commons(licence: str) -> str:
    """Returns the identifier for a URL of Creative Commons; empty for others."""
    _, found, path = licence.strip().lower().partition(_CREATIVE_COMMONS)
    place = "/".join(path.split("/")[:3])
    kind, _, version = place.removeprefix("licenses/").partition("/")
    return _PUBLIC_DOMAIN.get(place, f"CC-{kind}-{version}" if found else "")


def is_redistributable(licence: str | None) -> bool:
    """Tells whether a licence allows that everybody passes on the work, and what is made of it.

    Of an SPDX expression all parts joined by AND have to, and one of those joined by OR; one with
    brackets or WITH is not understood, and allows nothing.

    Args:
      licence: as the source states it; None where it states none.
    """
    known = None if licence is None else spdx(licence)
    if known is None or "(" in known or " WITH " in known:
        return False
    choices = (choice.split(" AND ") for choice in known.split(" OR "))
    return any(all(part in REDISTRIBUTABLE for part in choice) for choice in choices)
