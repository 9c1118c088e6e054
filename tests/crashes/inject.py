"""Lets each call of a build go wrong, one build for each, and finishes the build afterwards."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eqforge.commands import checks
from eqforge.core.errors import InputError
from eqforge.schemas.dataset.manifest import FILE_NAME, NEXT, load_manifest, with_final_paths
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import books
from tests.crashes.runs import HARMS, SMALLER_FILES, Server, bytes_of, differences

# What differs between two runs in the names of files that are being written.
_RANDOM = re.compile(r"\.tmp-[0-9a-f]{32}|\d+-[0-9a-f]{32}\.jsonl$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Injected:
    """What came of one call that went wrong.

    Attributes:
      harm: what happened to it.
      call: its number.
      hit: its name and path; empty where the run had fewer calls.
      status: the exit status of the run; None where the power was cut.
      is_rerun: whether the build was run again; not where an equal folder was finished before.
      finding: what is wrong; empty where all is well.
    """

    harm: str
    call: int
    hit: str
    status: int | None
    is_rerun: bool
    finding: str


class Sweep:
    """Injects faults into builds of one dataset.

    Args:
      server: runs the builds.
      folder: where they go.
      replaces: whether each build replaces a finished dataset, one with more and smaller files.

    Attributes:
      calls: how many calls of a build change files.
      whole: the bytes with which each has to end.
      before: the finished dataset that each replaces; None for none.
      more: what the command says beside the settings.
    """

    def __init__(self, server: Server, folder: Path, *, replaces: bool = False) -> None:
        self._server, self._folder = server, folder
        self.before: Path | None = None
        self.more: tuple[str, ...] = ()
        self.whole = self._build("whole")
        self._books = books(folder / "whole" / "out") if server.is_build else {}
        self._old: dict[str, bytes] = {}
        if replaces:
            self._old = self._build("before", SMALLER_FILES)
            self.before, self.more = folder / "before" / "out", ("--overwrite",)
        self.prepare(folder / "counted")
        self.calls = server.run(folder / "counted", more=self.more).calls
        self._finished: set[str] = set()

    def _build(self, name: str, more: tuple[str, ...] = ()) -> dict[str, bytes]:
        """Returns the bytes of a build that nothing happens to."""
        ended = self._server.run(self._folder / name, more=more)
        if ended.status != 0:
            raise RuntimeError(ended.said)
        return bytes_of(self._folder / name / "out")

    def prepare(self, root: Path) -> None:
        """Makes the folder of a run, with the dataset that the run replaces."""
        root.mkdir()
        if self.before is not None:
            shutil.copytree(self.before, root / "out")

    def harmed(self, output: Path) -> str:
        """Returns what is wrong where neither the finished dataset nor the new one is there."""
        if self.before is None:
            return ""
        try:
            dataset = open_dataset(str(output))
            wrong = list(checks.check_files(dataset))
            files = [file.path for table in dataset.manifest.tables.values() for file in table]
        except InputError as error:
            return f"the finished dataset is gone: {error}"
        if wrong:
            return f"the finished dataset is damaged: {wrong[0]}"
        found = {name.removeprefix(f"{NEXT}/"): (output / name).read_bytes() for name in files}
        is_one = any(found == _tables(whole) for whole in (self._old, self.whole))
        return "" if is_one else "the finished dataset is neither the old one nor the new one"

    def _more(self, output: Path) -> tuple[str, ...]:
        """Returns what the next command says: where the new dataset is, it need not ask."""
        if self.before is None or not (output / FILE_NAME).exists():
            return self.more
        there, new = load_manifest(str(output)), self._folder / "whole" / "out"
        return () if with_final_paths(there) == load_manifest(str(new)) else self.more

    def inject(self, harm: str, calls: Iterable[int]) -> Iterator[Injected]:
        """Yields what comes of each call's going wrong."""
        for call in calls:
            root = self._folder / f"{harm}-{call}"
            yield self._inject(harm, call, root)
            shutil.rmtree(root)

    def _inject(self, harm: str, call: int, root: Path) -> Injected:
        self.prepare(root)
        ended = self._server.run(root, HARMS[harm], call, more=self.more)
        finding = self._wrong_now(harm, ended.status, ended.said, root / "out")
        state = state_of(root / "out")
        is_rerun = state not in self._finished
        if is_rerun and not finding:
            finding = self.finish(root)
            self._finished.add(state)
        return Injected(
            harm=harm,
            call=call,
            hit=ended.hit,
            status=ended.status,
            is_rerun=is_rerun,
            finding=finding,
        )

    def _wrong_now(self, harm: str, status: int, said: str, output: Path) -> str:
        """Returns what is wrong with a run to which something happened."""
        if "Traceback" in said:
            return f"a traceback: {said[-2000:]}"
        if status == 0 and (found := differences(output, self.whole)):
            return f"status 0, and {found}"
        allowed = {0, 1, 2} if HARMS[harm].error else {0, 1, -9}
        if status not in allowed:
            return f"status {status}: {said[-500:]}"
        return self.harmed(output)

    def finish(self, root: Path) -> str:
        """Runs a build again; returns what is wrong with what it ends with, if anything is."""
        ended = self._server.run(root, more=self._more(root / "out"))
        if ended.status != 0:
            return f"run again: status {ended.status}: {ended.said[-500:]}"
        if found := differences(root / "out", self.whole):
            return f"run again: {found}"
        if self._server.is_build and books(root / "out") != self._books:
            return "run again: other books"
        left = [path.name for path in (root / "out").rglob(".tmp-*") if "_work" not in path.parts]
        left += [path.name for path in (root / "out").glob(NEXT)]
        return f"run again: left behind {left[0]}" if left else ""


def _tables(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name.startswith("data/")}


def state_of(output: Path) -> str:
    """Returns a digest of a folder's files, as far as runs do not differ in them anyway."""
    lines = []
    for path in sorted(output.rglob("*")):
        name = _RANDOM.sub("*", str(path.relative_to(output)))
        content = path.read_bytes() if path.is_file() else b"a folder"
        lines.append(f"{name} {hashlib.sha256(content).hexdigest()}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def spread(calls: int) -> list[int]:
    """Returns the numbers from 1 to `calls`, so that any first part of them is spread evenly."""
    width = max(1, (calls - 1).bit_length())
    backwards = (int(f"{number:0{width}b}"[::-1], 2) for number in range(1 << width))
    return [number + 1 for number in backwards if number < calls]
