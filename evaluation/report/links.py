"""Links into the pages: the fragment holds the whole state of a list."""

from urllib.parse import quote


def link(page: str, **facets: str) -> str:
    """Returns a link to the items of a page that have some values.

    Args:
      page: its file, such as `rejects.html`.
      **facets: the value by the facet's title.
    """
    said = "&".join(f"facet.{quote(k, safe='')}={quote(v, safe='')}" for k, v in facets.items())
    return f"{page}#{said}" if said else page
