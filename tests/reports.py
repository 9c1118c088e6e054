"""Reads the folder of a report back, as its pages do."""

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from eqforge.commands import report

HOSTILE = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }} ' \" ` <!-- \u2028 \u202e"
"""A text that would run, or break the page, where it is not escaped."""


def write_report(dataset: Path, output: Path, *options: str) -> Path:
    assert report.main([str(dataset), "--output", str(output), *options]) == 0
    return output


def given(folder: Path, name: str) -> Any:
    """Returns what a file of data hands to a page."""
    script = (folder / "data" / f"{name}.js").read_text("utf-8")
    start = f"eqforge.take({json.dumps(name)}, "
    assert script.startswith(start)
    assert script.endswith(");\n")
    return json.loads(script[len(start) : -3])


def chunks(folder: Path, table: str, kind: str) -> list[Any]:
    """Returns all items of a table, or their rows or texts."""
    found: list[Any] = []
    while len(found) < given(folder, f"{table}/index")["rows"]:
        step = given(folder, f"{table}/index")["search_chunk" if kind == "texts" else "chunk"]
        found += given(folder, f"{table}/{kind}/{len(found) // step}")
    return found


def exact(value: Any) -> Any:
    """Returns a value with texts in place of the numbers that JavaScript would round."""
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items()}
    if isinstance(value, list):
        return [exact(each) for each in value]
    return str(value) if type(value) is int and abs(value) > 2**53 else value


def facet(folder: Path, table: str, title: str) -> list[list[str]]:
    index = given(folder, f"{table}/index")
    place = [each["title"] for each in index["facets"]].index(title)
    data, values = given(folder, f"{table}/facets/{place}"), index["facets"][place]["values"]
    flat = np.frombuffer(base64.b64decode(data["data"]), dtype=f"<u{data['bytes']}")
    starts = np.arange(len(flat) + 1)
    if "starts" in data:
        starts = np.frombuffer(base64.b64decode(data["starts"]), dtype="<u4")
    own = [flat[a:b].tolist() for a, b in itertools.pairwise(starts)]
    return [[values[number] for number in one if number < len(values)] for one in own]


def numbers(folder: Path, table: str, title: str, group: str = "") -> np.ndarray:
    """Returns the number of each item [n], float32, NaN for none."""
    index = given(folder, f"{table}/index")
    place = [(each["group"], each["title"]) for each in index["numbers"]].index((group, title))
    data = given(folder, f"{table}/numbers/{place}")
    return np.frombuffer(base64.b64decode(data), dtype="<f4")


def digests(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
