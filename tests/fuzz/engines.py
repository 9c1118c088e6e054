"""Gives many inputs to a target, and notes what came of them."""

import contextlib
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tests.fuzz.limits import address_space
from tests.fuzz.targets import TARGETS, Target, outcome_of

SLOW_S = 2.0
LARGE_KB = 512 * 1024
INPUTS_AT_ONCE = 10_000
MOST_FINDINGS = 40


class Session:
    """The inputs of one target so far.

    Attributes:
      target: what gets the inputs.
      folder: where it may work.
      findings: the inputs that gave one, by what it was.
    """

    def __init__(self, name: str, folder: Path, keep: Path) -> None:
        self._name, self._keep, self._started = name, keep, time.process_time()
        warnings.simplefilter("error")
        self.target, self.folder = TARGETS[name](), folder
        self.findings: dict[str, Path] = {}
        self._outcomes: Counter[str] = Counter()
        for good in self.target.seeds:  # what is loaded once is nothing that an input takes
            outcome_of(self.target, good, folder)
        self._limit = contextlib.ExitStack()
        self._limit.enter_context(address_space())

    @property
    def inputs(self) -> int:
        """How many there were."""
        return self._outcomes.total()

    def take(self, data: bytes) -> None:
        started, before = time.process_time(), _peak_kb()
        try:
            self._outcomes[outcome_of(self.target, data, self.folder)] += 1
        except Exception as error:
            self._outcomes["finding"] += 1
            self._note(_place(error), data)
        if (taken := time.process_time() - started) > SLOW_S:
            self._note("slow", data, f"{taken:.1f} s")
        if (more := _peak_kb() - before) > LARGE_KB:
            self._note("large", data, f"{more // 1024} MB")

    def _note(self, what: str, data: bytes, said: str = "") -> None:
        if what not in self.findings and len(self.findings) < MOST_FINDINGS:
            self._keep.mkdir(parents=True, exist_ok=True)
            path = self._keep / f"{self._name}-{len(self.findings)}"
            path.write_bytes(data)
            self.findings[what] = path
            print(f"  {self._name}: {what} {said} -> {path}", flush=True)

    def tell(self, engine: str) -> int:
        """Prints what came of the inputs; returns the exit status."""
        kinds = ("records", "rejects", "refused", "finding")
        counts = ", ".join(f"{self._outcomes[kind]:,} {kind}" for kind in kinds)
        seconds = time.process_time() - self._started
        print(f"{self._name}: {engine}: {self.inputs:,} inputs: {counts}; {seconds:.0f} s of CPU")
        sys.stdout.flush()
        return 1 if self.findings else 0


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _place(error: Exception) -> str:
    """Tells exceptions apart by type and by the last line of eqforge that they passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/eqforge/" in frame.filename] or frames
    said = (str(error).splitlines() or [""])[0].partition(":")[0][:80]
    return f"{type(error).__name__} {Path(own[-1].filename).name}:{own[-1].lineno} {said}"


def fuzz_with_hypothesis(name: str, inputs: int, seed: int, keep: Path) -> int:
    """Draws a good file and a way to damage it; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="eqforge-fuzz-") as folder:
        session = Session(name, Path(folder), keep)
        for first in range(0, inputs, INPUTS_AT_ONCE):
            _draw(session, min(INPUTS_AT_ONCE, inputs - first), seed + first)
        return session.tell("hypothesis")


def _draw(session: Session, inputs: int, seed: int) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    target = session.target

    @seeded(seed)
    @settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(target.seeds), st.integers(0, 2**64 - 1))
    def take(good: bytes, way: int) -> None:
        session.take(target.mutate(good, random.Random(way)))

    take()


def fuzz_with_atheris(name: str, inputs: int, seed: int, keep: Path) -> int:
    """Looks for inputs that take branches of eqforge that none took before; ends the process."""
    import atheris

    with tempfile.TemporaryDirectory(prefix="eqforge-fuzz-") as folder:
        session = Session(name, Path(folder), keep)
        corpus = session.folder / "corpus"
        corpus.mkdir()
        for number, good in enumerate(session.target.seeds):
            (corpus / str(number)).write_bytes(good)

        def take(data: bytes) -> None:
            session.take(data)
            if session.inputs == inputs:  # libFuzzer itself would never return
                status = session.tell("atheris")
                shutil.rmtree(folder)
                os._exit(status)

        options = [f"-seed={seed + 1}", "-max_len=8192", "-verbosity=0", "-rss_limit_mb=0"]
        mutator = _mutator(session.target)
        atheris.Setup(["fuzz", *options, str(corpus)], take, custom_mutator=mutator)
        atheris.Fuzz()
    return 0


def _mutator(target: Target):  # type: ignore[no-untyped-def]
    """Returns libFuzzer's own mutations and the target's, by turns."""
    import atheris

    def mutate(data: bytes, max_size: int, way: int) -> bytes:
        if way % 2:
            found: bytes = atheris.Mutate(data, max_size)
            return found
        return target.mutate(data, random.Random(way))[:max_size]

    return mutate
