"""The command `eqforge efficiency`."""

import sys

from eqforge.core.shell import Command
from eqforge.core.visible import in_lines
from eqforge.evaluation.efficiency.result import Efficiency, EfficiencySettings


def summary(found: Efficiency) -> str:
    threads = f"{found.machine['cpu']}, {found.machine['torch_threads']} threads"
    lines = [f"{found.model.name} on {found.machine.get('gpu') or threads}"]
    lines.append("one item at a time:")
    for name, stage in found.stages.items():
        is_passed = name == "detector" and found.detector is None
        label = "detector (as passed)" if is_passed else name
        times = (1000 * seconds for seconds in (stage.median, stage.low, stage.high, stage.mean))
        lines.append(
            "  {:<20} median {:.2f} ms [{:.2f}, {:.2f}], mean {:.2f} ms".format(label, *times)
        )
    lines.append("batches of prepared inputs:")
    for speed in found.sweep:
        best = "  (best)" if speed.batch == found.best_batch else ""
        lines.append(f"  {speed.batch:<20} {speed.per_second:,.1f} per second{best}")
    lines += [f"  {found.stopped}"] if found.stopped else []
    lines += [f"{count:,} items were not timed ({name})" for name, count in found.failures.items()]
    return in_lines([*lines, *(f"warning: {warning}" for warning in found.warnings)])


def efficiency_command(settings: EfficiencySettings) -> int:
    from eqforge.evaluation.efficiency.measure import measure_efficiency

    print(summary(measure_efficiency(settings)))
    return 0


main = Command(
    "eqforge efficiency",
    EfficiencySettings,
    efficiency_command,
    example="eqforge efficiency out/eq-video --model clip:FOLDER --output out/times.json",
    basics=("task", "items", "repeats", "batches", "threads", "detector"),
    keeps_output=True,
)

if __name__ == "__main__":
    sys.exit(main())
