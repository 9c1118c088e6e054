"""Lets each call of a build go wrong, one build for each, and finishes the build afterwards."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.builds import books, dataset_bytes
from tests.crashes.runs import HARMS, Server, differences

# What differs between two runs in the names of files that are being written.
_RANDOM = re.compile(r"\.tmp-[0-9a-f]{32}|\.[0-9a-f]{16}\.tmp$|\d+-[0-9a-f]{32}\.jsonl$")


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
    """

    def __init__(self, server: Server, folder: Path) -> None:
        self._server, self._folder = server, folder
        ended = server.run(folder / "whole")
        if ended.status != 0:
            raise RuntimeError(ended.said)
        self.calls = ended.calls
        self.whole = dataset_bytes(folder / "whole" / "out")
        self._books = books(folder / "whole" / "out")
        self._finished: set[str] = set()

    def inject(self, harm: str, calls: Iterable[int]) -> Iterator[Injected]:
        """Yields what comes of each call's going wrong."""
        for call in calls:
            root = self._folder / f"{harm}-{call}"
            yield self._inject(harm, call, root)
            shutil.rmtree(root)

    def _inject(self, harm: str, call: int, root: Path) -> Injected:
        ended = self._server.run(root, HARMS[harm], call)
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
        return "" if status in allowed else f"status {status}: {said[-500:]}"

    def finish(self, root: Path) -> str:
        """Runs a build again; returns what is wrong with what it ends with, if anything is."""
        ended = self._server.run(root)
        if ended.status != 0:
            return f"run again: status {ended.status}: {ended.said[-500:]}"
        if found := differences(root / "out", self.whole):
            return f"run again: {found}"
        if books(root / "out") != self._books:
            return "run again: other books"
        left = [path.name for path in (root / "out").glob(".tmp-*")]
        left += [path.name for path in (root / "out" / "data").glob(".tmp-*")]
        return f"run again: left behind {left[0]}" if left else ""


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
