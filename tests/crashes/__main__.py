"""Lets every call of small builds go wrong, and cuts the power after every one of them.

    python -m tests.crashes all                          # every call, killed, failing and replayed
    python -m tests.crashes video --harms kill,EIO       # one dataset, two kinds of harm
    python -m tests.crashes text --harms power --most 200
    python -m tests.crashes text --replaces              # each build replaces a finished dataset
    python -m tests.crashes report --harms kill          # pages; `review` is `review import`

Each run that was harmed is run again, and has to end with the same bytes and books; a run that ends
with status 0 has to have them at once. Prints counts; status 1 where there was a finding.
"""

import argparse
import collections
import json
import sys
import tempfile
from pathlib import Path

from tests.crashes.inject import Sweep, spread
from tests.crashes.replay import POWER, Replay
from tests.crashes.runs import DATASETS, HARMS, server_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crashes", description=__doc__)
    parser.add_argument("dataset", choices=(*DATASETS, "all"))
    parser.add_argument("--harms", default=",".join([*HARMS, POWER]))
    parser.add_argument("--most", type=int, help="calls of each kind, spread over the build")
    parser.add_argument("--replaces", action="store_true", help="a finished dataset is there")
    parser.add_argument("--log", type=Path, help="JSON lines, one for each call")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    harms = options.harms.split(",")
    if unknown := set(harms) - {*HARMS, POWER}:
        parser.error(f"unknown harm {min(unknown)}; known: {', '.join([*HARMS, POWER])}")
    names = list(DATASETS) if options.dataset == "all" else [options.dataset]
    findings = sum(_harm(name, harms, options) for name in names)
    return 1 if findings else 0


def _harm(dataset: str, harms: list[str], options: argparse.Namespace) -> int:
    findings = 0
    with server_of(dataset) as server, tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(server, Path(folder).resolve(), replaces=options.replaces)
        for harm in harms:
            counts: collections.Counter[str] = collections.Counter()
            if harm == POWER:
                replay = Replay(server, sweep, Path(folder).resolve())
                results = replay.run(options.seed, options.most)
            else:
                results = sweep.inject(harm, spread(sweep.calls)[: options.most])
            for result in results:
                counts["tried"] += 1
                counts["run again"] += result.is_rerun
                counts[f"status {result.status}"] += result.status is not None
                counts["findings"] += bool(result.finding)
                if result.finding:
                    print(f"{dataset} {harm} {result.call} {result.hit}: {result.finding}")
                if options.log:
                    with options.log.open("a") as stream:
                        values = {name: getattr(result, name) for name in type(result).__slots__}
                        stream.write(json.dumps({"dataset": dataset, **values}) + "\n")
            print(f"{dataset}, {sweep.calls} calls, {harm}: {dict(counts)}", flush=True)
            findings += counts["findings"]
    return findings


if __name__ == "__main__":
    sys.exit(main())
