"""Cuts the power after each call of a build: what was not synced may be lost, in any order.

The calls of a whole build are written down with their data. A disk may then hold of it what was
synced, and of the rest anything: a name without the bytes of its file, or a later file without an
earlier one. No file system promises less. For each call, folders are made as a power cut after it
may leave them, and the build is run again on each.
"""

import itertools
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.crashes.inject import Injected, Sweep, spread, state_of
from tests.crashes.runs import Server, differences

POWER = "power"
RANDOM_STATES = 3
Fate = Literal["kept", "zeros", "gone"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that succeeded: its name, its path or paths, where it wrote, and what."""

    name: str
    path: str
    other: str
    at: int
    data: bytes


@dataclass(eq=False, slots=True)
class Node:
    """A file or a folder, whatever it is called.

    Attributes:
      is_folder: which of the two.
      changes: of a file, the number of each call that changed its bytes, and where, with what; no
        bytes cut it there.
      entries: of a folder, the number of each call that changed a name in it, the name, and what it
        stands for since then.
      synced: the numbers of the calls that synced it.
    """

    is_folder: bool
    changes: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    entries: list[tuple[int, str, "Node | None"]] = field(default_factory=list)
    synced: list[int] = field(default_factory=list)

    def is_safe(self, change: int, until: int) -> bool:
        """Tells whether a change was synced before a cut."""
        return any(change < sync <= until for sync in self.synced)

    def names(self) -> dict[str, "Node"]:
        """Returns what is in a folder after all calls so far."""
        found: dict[str, Node] = {}
        for _, name, node in self.entries:
            found.pop(name, None)
            if node is not None:
                found[name] = node
        return found


def read_log(log: bytes, root: str) -> Iterator[Call]:
    """Yields the calls in `root/out` that a log tells of, with paths relative to the root."""
    start = 0
    while start < len(log):
        end = log.index(b"\n", start)
        name, path, other, at, size = log[start:end].decode().split("\t")
        start = end + 1 + int(size)
        path, other = (name.removeprefix(root).removeprefix("/") for name in (path, other))
        if path.partition("/")[0] in ("", "out"):
            yield Call(name, path, other, int(at), log[end + 1 : start])


class Disk:
    """What a build did to a disk, call by call.

    Args:
      calls: of a whole build.
      before: a folder that is on the disk already, as `out`; None for none.
    """

    def __init__(self, calls: list[Call], before: Path | None = None) -> None:
        self.top = Node(is_folder=True)
        if before is not None:
            self.top.entries.append((-1, "out", _imported(before)))
        for number, call in enumerate(calls):
            self._take(number, call)

    def _take(self, number: int, call: Call) -> None:
        folder, name = self._find(call.path)
        node = folder.names().get(name) if name else self.top
        match call.name:
            case "mkdir":
                folder.entries.append((number, name, Node(is_folder=True)))
            case "create" | "truncate":
                if node is None:
                    folder.entries.append((number, name, Node(is_folder=False)))
                elif call.name == "truncate":
                    node.changes.append((number, 0, None))
            case "remove":
                folder.entries.append((number, name, None))
            case "rename":
                target, new = self._find(call.other)
                target.entries.append((number, new, node))
                folder.entries.append((number, name, None))
            case "exchange":
                target, new = self._find(call.other)
                folder.entries.append((number, name, target.names().get(new)))
                target.entries.append((number, new, node))
            case "link":
                target, new = self._find(call.other)
                target.entries.append((number, new, node))
            case "write" if node is not None:
                node.changes.append((number, call.at, call.data))
            case "cut" if node is not None:
                node.changes.append((number, call.at, None))
            case "fsync" if node is not None:
                node.synced.append(number)

    def _find(self, path: str) -> tuple[Node, str]:
        """Returns the folder of a path, and the name in it."""
        node = self.top
        *folders, name = path.split("/")
        for part in folders:
            node = node.names()[part]
        return node, name

    def write(self, cut: int, fate: "Fates", folder: Path) -> None:
        """Writes what a power cut after a call leaves into a new folder."""
        _write(self.top, cut, fate, folder)


class Fates:
    """Says what becomes of each change that was not synced.

    Args:
      names: whether changes of names are kept; None lets chance decide.
      data: what becomes of written bytes; None likewise.
      rng: chance.
    """

    def __init__(self, names: bool | None, data: Fate | None, rng: random.Random) -> None:
        self._names, self._data, self._rng = names, data, rng
        self._calls: dict[int, bool] = {}

    def keeps_name(self, call: int) -> bool:
        """Tells whether a change of names is kept; both names of a renaming have one fate."""
        if self._names is not None:
            return self._names
        return self._calls.setdefault(call, self._rng.random() < 0.5)

    def of_data(self) -> Fate:
        """Returns what becomes of bytes."""
        if self._data is not None:
            return self._data
        return self._rng.choice(("kept", "zeros", "gone"))


def _imported(folder: Path) -> Node:
    node = Node(is_folder=True, synced=[0])
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            node.entries.append((-1, path.name, _imported(path)))
        else:
            content: list[tuple[int, int, bytes | None]] = [(-1, 0, path.read_bytes())]
            node.entries.append((-1, path.name, Node(False, content, synced=[0])))
    return node


def _write(node: Node, cut: int, fates: Fates, place: Path) -> None:
    place.mkdir()
    names: dict[str, Node] = {}
    for number, name, child in node.entries:
        if number > cut or not (
            number < 0 or node.is_safe(number, cut) or fates.keeps_name(number)
        ):
            continue
        names.pop(name, None)
        if child is not None:
            names[name] = child
    for name, child in names.items():
        if child.is_folder:
            _write(child, cut, fates, place / name)
        else:
            (place / name).write_bytes(_content(child, cut, fates))


def _content(node: Node, cut: int, fates: Fates) -> bytes:
    content = bytearray()
    for number, at, data in node.changes:
        if number > cut:
            continue
        fate = "kept" if number < 0 or node.is_safe(number, cut) else fates.of_data()
        if fate == "gone":
            continue
        if data is None:
            del content[at:]
            continue
        content.extend(bytes(max(0, at + len(data) - len(content))))
        content[at : at + len(data)] = data if fate == "kept" else bytes(len(data))
    return bytes(content)


class Replay:
    """Cuts the power after each call of one build.

    Args:
      server: runs the builds.
      sweep: knows the dataset that each has to end with.
      folder: where they go.
    """

    def __init__(self, server: Server, sweep: Sweep, folder: Path) -> None:
        self._sweep, self._folder = sweep, folder
        root, log = folder / "logged", folder / "log"
        sweep.prepare(root)
        ended = server.run(root, log=log, more=sweep.more)
        if ended.status != 0:
            raise RuntimeError(ended.said)
        self.calls = list(read_log(log.read_bytes(), str(root)))
        self._disk = Disk(self.calls, sweep.before)

    def run(self, seed: int = 0, most: int | None = None) -> Iterator[Injected]:
        """Yields what comes of each folder that a power cut may leave, and that is like no other.

        Args:
          seed: of the folders in which chance decides.
          most: how many folders at most, spread over the build.
        """
        seen: set[str] = set()
        for cut, name, fates in self._cuts(seed):
            root = self._folder / f"cut-{cut}-{name}"
            self._disk.write(cut, fates, root)
            is_over = cut == len(self.calls) - 1
            state = state_of(root / "out")
            finding = self._sweep.harmed(root / "out")
            if is_over and (found := differences(root / "out", self._sweep.whole)):
                finding = f"the run had ended with status 0: {found}"
            if state not in seen or finding:
                seen.add(state)
                finding = finding or self._sweep.finish(root)
                call = self.calls[cut]
                yield Injected(
                    harm=f"{POWER}: {name}",
                    call=cut + 1,
                    hit=f"{call.name} {call.path}",
                    status=None,
                    is_rerun=True,
                    finding=finding,
                )
            shutil.rmtree(root)
            if most is not None and len(seen) >= most:
                return

    def _cuts(self, seed: int) -> Iterator[tuple[int, str, Fates]]:
        """Yields each call, what is lost after it, and how that is decided."""
        kinds: list[tuple[str, bool | None, Fate | None]] = [
            ("all that was not synced is lost", False, "gone"),
            ("names without bytes", True, "gone"),
            ("names with zeros", True, "zeros"),
        ]
        kinds += [(f"chance {number}", None, None) for number in range(RANDOM_STATES)]
        for (name, names, data), cut in itertools.product(kinds, _spread_back(len(self.calls))):
            rng = random.Random(f"{seed} {name} {cut}")
            yield cut, name.replace(" ", "-"), Fates(names, data, rng)


def _spread_back(calls: int) -> Iterator[int]:
    """Yields the numbers below `calls`, the last first, and others spread evenly."""
    return (calls - number for number in spread(calls))
