"""The items of a published benchmark, each with an id of its own."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.foreign_rows import with_names
from eqforge.core.identity import short_digest
from eqforge.sources.benchmarks.form import BenchmarkItem, Entry, Form
from eqforge.sources.benchmarks.published import FORMS
from eqforge.sources.benchmarks.recognise import form_of
from eqforge.sources.benchmarks.records import NAMED, Columns, read_entries


def read_items(benchmark: str, source: Path, columns: Columns = NAMED) -> Iterator[BenchmarkItem]:
    """Yields the rows of a benchmark in the order of its files.

    Args:
      benchmark: a key of BENCHMARKS.
      source: see `records.benchmark_files`.
      columns: what the columns are called, of your own tables.

    Raises:
      InputError: a record has none of the benchmark's forms, lacks a field, or has the id of
        another that says something else; there is none.
    """
    forms, names = FORMS[benchmark], _Names()
    number = 0
    for form, entry in _with_forms(forms, read_entries(source, forms, columns)):
        items = list(form.read(entry))
        is_named = entry.part and not form.is_one_file
        prefix = f"{benchmark}/{entry.part}/" if is_named else f"{benchmark}/"
        suffix = names.suffix(entry, f"{prefix}{items[0].item_id}") if items else ""
        for item in items:
            number += 1
            group = item.group and f"{prefix}{item.group}{suffix}"
            cells = item.cells if any(item.cells) else ()
            item_id = f"{prefix}{item.item_id}{suffix}"
            yield replace(item, item_id=item_id, group=group, cells=cells)
    if not number:
        raise InputError(f"{source}: holds no record")


def _with_forms(forms: tuple[Form, ...], entries: Iterable[Entry]) -> Iterator[tuple[Form, Entry]]:
    """Yields the records with their forms; those of a form that joins them, joined."""
    join = next((form.joined for form in forms if form.joined is not None), None)
    if join is None:
        yield from ((form_of(forms, entry), entry) for entry in entries)
        return
    checked = ((form_of(forms, entry), entry) for entry in entries)
    plain: list[Form] = []

    def noted() -> Iterator[Entry]:
        for form, entry in checked:
            plain[:] = [form]
            yield entry

    for entry in join(noted()):
        yield plain[0], entry


class _Names:
    """Tells records of one name apart: equal ones are numbered, others are an error."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int, str]] = {}

    def suffix(self, entry: Entry, name: str) -> str:
        """Returns what is appended to the ids of a record's items.

        Raises:
          InputError: another record has the name, and says something else.
        """
        digest = short_digest(with_names(entry.node.value))
        here = f"{entry.node.file}: {entry.node.where}"
        known, count, place = self._seen.get(name, (digest, 0, here))
        if known != digest:
            raise InputError(
                f"{here}: the id {shown(name)} is that of {place}, "
                "which says something else; ids have to be distinct in all files: --columns "
                "id=NAME names another column of them, or import the files one by one, and combine"
            )
        self._seen[name] = digest, count + 1, place
        if not count:
            return ""
        numbered = f"{name}-{count + 1}"
        if self._seen.setdefault(numbered, (digest, 1, here))[0] != digest:
            raise InputError(
                f"{here}: {shown(name)} appears {count + 1} times, "
                f"and another record has the id {shown(numbered)}"
            )
        return numbered.removeprefix(name)
