"""`eqforge doctor`: list what this machine lacks, what that costs, and how to install it.

Nothing is fetched or changed. A sandboxed process tests what the sandbox blocks.
"""

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from eqforge.core.errors import EqforgeError
from eqforge.core.files.disk import cache_folder
from eqforge.core.sandbox import landlock, probe
from eqforge.core.sandbox.sandbox import VARIABLE
from eqforge.core.shell import Command
from eqforge.generators.scenes.kubric_import import EXTRA, no_blender
from eqforge.generators.text.wordnet import open_wordnet

State = Literal["ok", "missing", "NECESSARY"]

_REQUIREMENT: Final = re.compile(r"^([\w.-]+)(?:\[[^\]]*\])?.*?(?:extra == \"([\w-]+)\")?$")
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")
_COSTS: Final = {
    "video": "datasets of videos",
    "text": "datasets of captions, lint or audit",
    "render": "eq-kubric",
    "plots": "plot",
    "models": "eq-sd, eq-edit, oracles, score, metrics or finetune",
    "dataflow": "Dataflow or gs:// addresses",
    "s3": "s3:// addresses",
}
_BLOCKED_BY: Final = {
    "files": ("landlock", ("read", "list", "write", "delete")),
    "network": ("seccomp", ("tcp", "udp", "ipv6", "unix", "pair")),
    "programs": ("seccomp", ("exec", "fork")),
    "other processes": ("seccomp", ("signal", "owner")),
    "memory": ("limits", ("memory",)),
}
_SANDBOX_REMEDY: Final = {
    "landlock": "Linux 5.13 or later with `landlock` in its lsm= list; a container also needs "
    "a profile that allows landlock",
    "seccomp": "Linux on x86-64 or ARM64; a container also needs a profile that allows seccomp",
    "limits": "a system that can limit address space (RLIMIT_AS)",
}
_GIB: Final = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """List missing tools, what you cannot do without them, and how to install them.

    The exit status is 0 if all required tools are installed, and 1 otherwise.
    """

    json: bool = False
    """Print JSON instead of a table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One thing that the machine has or lacks.

    Attributes:
      state: NECESSARY is missing, and nothing runs without it.
      found: a version, an amount, or what the system said.
      cost: what does not work without it.
    """

    name: str
    state: State
    found: str = ""
    cost: str = ""
    remedy: str = ""


def doctor(arguments: Arguments) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    found = list(facts())
    if arguments.json:
        print(json.dumps([asdict(fact) for fact in found], indent=2))
    else:
        table = Table(box=None)
        for heading in ("", "", "found", "consequence", "how to get it"):
            table.add_column(heading, overflow="fold")
        for fact in found:
            table.add_row(*map(Text, (fact.name, fact.state, fact.found, fact.cost, fact.remedy)))
        Console(width=None if sys.stdout.isatty() else 160).print(table)
    return int(any(fact.state == "NECESSARY" for fact in found))


def facts() -> Iterator[Fact]:
    yield Fact(name="python", state="ok", found=platform.python_version())
    yield from _packages()
    yield from _sandbox()
    version, fault = "", ""
    try:
        version = f"wordnet {open_wordnet().get_version()}"
    except EqforgeError as error:
        fault = str(error).splitlines()[0]
    cost, remedy = "no hard negatives, perturbations or granularity", "eqforge setup wordnet"
    yield _fact("WordNet", version, cost, remedy, fault=fault)
    java = _first_line("java", "-version")
    yield _fact("Java", java, "no local Flink jobs", "apt-get install openjdk-17-jre-headless")
    yield from _resources()


def _packages() -> Iterator[Fact]:
    lacking: dict[str, list[str]] = defaultdict(list)
    extras: dict[str, list[str]] = defaultdict(list)
    for text in importlib.metadata.requires("eqforge") or ():
        match = _REQUIREMENT.match(text)
        assert match is not None  # of a file that setuptools wrote
        name, extra = match[1], match[2] or ""
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            installed = None
        if f"{name} {installed}" in extras[extra]:
            continue  # one line for each Python
        extras[extra].append(f"{name} {installed}")
        if installed is None:
            lacking[extra].append(name)
    version = importlib.metadata.version("eqforge")
    yield Fact(
        name="eqforge",
        state="NECESSARY" if lacking[""] else "ok",
        found=f"{version}; not installed: {', '.join(lacking[''])}" if lacking[""] else version,
        cost="nothing works" if lacking[""] else "",
        remedy="pip install eqforge" if lacking[""] else "",
    )
    for extra in [extra for extra in extras if extra in _COSTS]:
        missing = lacking[extra]
        yield _fact(
            f"eqforge[{extra}]",
            ", ".join(extras[extra]) if not missing else None,
            f"no {_COSTS[extra]}",
            (extra == EXTRA and no_blender()) or f"pip install 'eqforge[{extra}]'",
            fault=f"not installed: {', '.join(missing)}",
        )
    if find_spec("av") is not None:
        import av

        codec = av.library_versions["libavcodec"]
        found = f"libavcodec {'.'.join(map(str, codec))} of PyAV {av.__version__}"
        yield Fact(name="ffmpeg", state="ok", found=found)
    card = _first_line("nvidia-smi", "-L")  # torch would take seconds to say it
    yield _fact(
        "graphics card",
        card and card.split(" (UUID")[0],
        "models and rendering run on the CPU, which is slow",
        "an NVIDIA card and its driver",
    )


def _sandbox() -> Iterator[Fact]:
    if os.environ.get(VARIABLE) == "off":
        yield Fact(
            name="sandbox", state="missing", found=f"{VARIABLE}=off",
            cost="decoders run with all your permissions", remedy=f"unset {VARIABLE}",
        )  # fmt: skip
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.touch()
        blocked = probe.outcomes(str(path))
    for name, (part, tries) in _BLOCKED_BY.items():
        passed = [each for each in tries if not blocked[each]]
        yield _fact(
            f"sandbox: {name}",
            None if passed else f"blocked: {', '.join(tries)}",
            f"the sandbox does not limit the use of {name} by decoders",
            _SANDBOX_REMEDY[part],
            fault=f"not blocked: {', '.join(passed)}",
        )
    if 0 < landlock.version() < 4:
        yield Fact(name="landlock", state="ok", found=f"version {landlock.version()}, without TCP")


def _first_line(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (ended.stdout + ended.stderr).splitlines()
    return _STYLE.sub("", lines[0]) if ended.returncode == 0 and lines else None


def _resources() -> Iterator[Fact]:
    folders = {"temporary folder": Path(tempfile.gettempdir()), "cache": cache_folder()}
    for name, folder in folders.items():
        nearest = next(each for each in (folder, *folder.parents) if each.exists())
        free = shutil.disk_usage(nearest).free
        is_writable = os.access(nearest, os.W_OK)
        yield _fact(
            name,
            f"{folder}: {free / _GIB:.1f} GiB free" if is_writable else None,
            "no builds" if name == "temporary folder" else "no downloads with `eqforge setup`",
            f"set {'TMPDIR' if 'temp' in name else 'EQFORGE_CACHE'} to a writable folder",
            fault=f"{folder}: cannot be written",
            is_necessary=name == "temporary folder",
        )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found = f"{memory / _GIB:.1f} GiB, {os.cpu_count()} processors"
    yield Fact(name="memory", state="ok", found=found)


def _fact(
    name: str,
    found: str | None,
    cost: str,
    remedy: str,
    *,
    fault: str = "not found",
    is_necessary: bool = False,
) -> Fact:
    if found:
        return Fact(name=name, state="ok", found=found)
    state: State = "NECESSARY" if is_necessary else "missing"
    return Fact(name=name, state=state, found=fault, cost=cost, remedy=remedy)


main = Command("eqforge doctor", Arguments, doctor, keeps_output=True)
