"""The pages: templates filled with what is known of a dataset, and the files that they load."""

import importlib.resources
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from typing import Any

from eqforge.core.files import storage
from eqforge.evaluation.report.folder import Folder


def write_page(folder: Folder, template: str, path: str, **context: Any) -> None:
    """Writes a page.

    Args:
      folder: the report's.
      template: its name, such as `rows.html`.
      path: the file that is written.
      **context: what the template says; all text is escaped.
    """
    folder.write(path, rendered(template, **context))


def rendered(template: str, **context: Any) -> str:
    """Returns what a template says of something; all text is escaped."""
    return str(_environment().get_template(template).render(**context))


def write_assets(folder: Folder) -> None:
    """Writes the scripts and styles that the pages load."""
    assets = _site() / "assets"
    for path, data in sorted(_files(assets).items()):
        storage.write_bytes(storage.join(folder.root, "assets", path), data, synced=False)


def _files(folder: Traversable) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for each in folder.iterdir():
        if each.is_file():
            found[each.name] = each.read_bytes()
        else:
            found |= {f"{each.name}/{path}": data for path, data in _files(each).items()}
    return found


def _site() -> Traversable:
    return importlib.resources.files("eqforge.evaluation.report") / "site"


def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (_site() / name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
