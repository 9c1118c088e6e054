"""Two drivers at once, a clock that jumps, and inputs that are replaced while a build reads them.

    python -m tests.attacks.races two --rounds 50        # the first is killed in half of the rounds
    python -m tests.attacks.races clock --rounds 20      # times of files, and `clock_gettime`
    python -m tests.attacks.races replaced --rounds 100  # captions, a video or an image, by rename

Prints what each round came to, and counts; status 1 where there was a finding.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from eqforge.core.identity import sha256_hex
from tests.builds import ENTRY, dataset_bytes, rows
from tests.clips import Clip, write_clip
from tests.faults import runs

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
/* Jumps up to two days to and fro at every question. */
static long jump(void) { static unsigned seed = 7; return rand_r(&seed) % 345600 - 172800; }
int clock_gettime(clockid_t clock, struct timespec *found) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, found);
    if (clock == CLOCK_REALTIME) found->tv_sec += jump();
    return status;
}
int gettimeofday(struct timeval *found, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec, found->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
"""
PHASES = ("_work/identity", "_work/plan", "_work/done/extract", "_work/shards/", "data/", "README")


@dataclass(frozen=True)
class Replaced:
    """Gives a file its other content, by rename, when a file of the output gets its name."""

    target: Path
    other: Path

    def __call__(self, _source: Path, _name: Path) -> None:
        copy = self.target.with_name(".other")
        shutil.copy(self.other, copy)
        os.replace(copy, self.target)


def images_built(argv: list[str], log: Path, before: Callable[[], None]) -> None:
    os.setsid()
    with open(log, "wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    from eqforge.pipelines import retrieval_perturbations

    before()
    sys.exit(retrieval_perturbations.main(argv))


def two(folder: Path, rng: random.Random, inputs: runs.Inputs, whole: dict[str, bytes]) -> str:
    """Starts a second driver at any moment of the first, which may be killed."""
    output, is_killed = folder / "out", rng.random() < 0.5
    first = runs.start(inputs, output)
    time.sleep(rng.uniform(0, 3))
    second = runs.start(inputs, output)
    if is_killed:
        time.sleep(rng.uniform(0, 2))
        os.killpg(first.pid, signal.SIGKILL)
    ended = [first.end(), second.end()]
    for status, said in ended:
        if status == 2 and not said.endswith(": another run is writing there\n"):
            return f"FOUND {said[-300:]}"
        if status not in (0, 2, -signal.SIGKILL) or "Traceback" in said:
            return f"FOUND status {status}: {said[-300:]}"
    last = runs.build(inputs, output)
    if last[0] != 0 or dataset_bytes(output) != whole:
        return f"FOUND {last}"
    return f"statuses {ended[0][0]} and {ended[1][0]}"


def clock(folder: Path, rng: random.Random, inputs: runs.Inputs, whole: dict[str, bytes]) -> str:
    """Kills a build, gives all files odd times, and goes on under a clock that jumps."""
    output, library = folder / "out", folder / "clock.so"
    (folder / "clock.c").write_text(CLOCK)
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(folder / "clock.c"), "-ldl"]
    subprocess.run(command, check=True)
    fault = runs.Fault(at=rng.choice(PHASES), nth=1, happen=runs.kill)
    assert runs.build_with(fault, inputs, output)[0] == -signal.SIGKILL
    done = {path: path.stat().st_ino for path in (output / "_work" / "done").rglob("*.json")}
    for path in (*output.rglob("*"), *inputs.videos.iterdir(), inputs.captions):
        at = rng.choice((0, 10**9, int(time.time()) + 10**8, 2**33))
        os.utime(path, (at, at))
    argv = [*ENTRY, "build", "eq-video", *inputs.arguments(output)]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0 or dataset_bytes(output) != whole:
        return f"FOUND status {ended.returncode}: {ended.stderr[-500:]}"
    if any(path.stat().st_ino != inode for path, inode in done.items()):
        return "FOUND finished work was done again"
    return f"killed at {fault.at}, status 0"


def replaced(folder: Path, rng: random.Random, inputs: runs.Inputs, _: dict[str, bytes]) -> str:
    """Replaces an input at any moment; what is stored is of the digest beside it, or rejected."""
    here = folder / "in"
    here.mkdir()
    what, output = rng.choice(("captions", "video", "image")), folder / "out"
    fault: dict[str, Any] = {
        "at": rng.choice(PHASES),
        "nth": rng.randint(1, 3),
        "when": rng.choice(("before", "after")),
    }
    others = {}
    if what == "image":
        (here / "images").mkdir()
        lines = []
        for number in range(6):
            for name, place in (("images", here / "images"), ("other", folder)):
                pixels = np.full((40, 60 if name == "images" else 72, 3), 9 * number, np.uint8)
                Image.fromarray(pixels).save(place / f"{number}.png")
            lines.append({"image": f"{number}.png", "caption": "Two dogs sit on a bench."})
        captions = here / "c.jsonl"
        captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
        name = f"{rng.randrange(6)}.png"
        target, other = here / "images" / name, folder / name
        argv = ["--captions", str(captions), "--images", str(target.parent)]
        argv += ["--output", str(output)]
    else:
        shutil.copytree(inputs.videos, here / "videos")
        shutil.copy(inputs.captions, here / "c.jsonl")
        mine = runs.Inputs(captions=here / "c.jsonl", videos=here / "videos")
        target, other = here / "c.jsonl", folder / "other.mp4"
        if what == "video":
            target = here / "videos" / f"{rng.randrange(3):02}.mp4"
            write_clip(other, Clip(size=(160, 96), starts_ms=range(0, 1000, 40)))
        else:
            other.write_text(target.read_text().replace("counter", "display"))
        argv = mine.arguments(output)
    others = {sha256_hex(file.read_bytes()): file.read_bytes() for file in (target, other)}
    before = runs.Installed(runs.Fault(**fault, happen=Replaced(target, other)), output)
    if what == "image":
        log = folder / "log"
        process = runs._server.Process(target=images_built, args=(argv, log, before))
        process.start()
        process.join()
        status, said = process.exitcode or 0, log.read_text()
    else:
        status, said = runs.build(mine, output, before)
    at = f"{what} {fault['when']} {fault['at']} {fault['nth']}"
    if status not in (0, 1, 2) or "Traceback" in said:
        return f"FOUND {at}: status {status}: {said[-300:]}"
    if status:
        return f"{what}: status {status}: {said.splitlines()[-1].partition(': ')[2][-60:]}"
    manifest = json.loads((output / "dataset.json").read_text())
    samples, stored = rows(output, "samples"), rows(output, "images")
    if what == "captions":
        known = {each["sha256"] for each in manifest["inputs"]} & set(others)
        text = "".join(others[one].decode() for one in known)
        if len(known) != 1 or not all(row["caption_0"] in text for row in samples):
            return f"FOUND {at}: captions of neither digest {known}"
    if what == "image":
        for row in stored:
            wide = 72 if row["image"]["bytes"] == other.read_bytes() else 60
            if row["width_px"] != wide or row["image_id"] != sha256_hex(row["image"]["bytes"]):
                return f"FOUND {at}: an image of {row['width_px']} pixels"
    if what == "video":
        widths = {row["image_id"]: row["width_px"] for row in stored}
        for row in samples:
            for side in "01":
                origin, width = row[f"origin_{side}"], widths[row[f"image_{side}_id"]]
                is_other = origin["source_sha256"] == sha256_hex(other.read_bytes())
                if origin["source_path"] == target.name and is_other != (width == 160):
                    return f"FOUND {at}: a frame of {width} pixels in {origin}"
            if row["origin_0"]["source_sha256"] != row["origin_1"]["source_sha256"]:
                return f"FOUND {at}: a pair of two files"
    refused = Counter(row["reason"] for row in rows(output, "rejects"))
    return f"{what}: status 0, rejects {dict(refused)}"


ATTACKS = {"two": two, "clock": clock, "replaced": replaced}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.races", description=__doc__)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    runs.start_server()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        inputs = runs.make_inputs(place / "in", videos=3)
        assert runs.build(inputs, place / "whole")[0] == 0
        for number in range(options.rounds):
            folder = place / str(number)
            folder.mkdir()
            rng = random.Random(f"{options.attack} {options.seed} {number}")
            came = ATTACKS[options.attack](folder, rng, inputs, dataset_bytes(place / "whole"))
            print(f"round {number}: {came}", flush=True)
            counts[came.partition(":")[0] if "FOUND" in came else came] += 1
            shutil.rmtree(folder)
    for came, count in counts.most_common():
        print(f"{count:5} {came}")
    return 1 if any("FOUND" in came for came in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
