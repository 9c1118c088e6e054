"""The machine that times are measured on: its processor, GPU, libraries and clocks."""

import os
import platform
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eqforge.core.identity import versions_of
from eqforge.core.ranges import usable_cores

_LIBRARIES = ("eqforge", "torch", "transformers", "tokenizers", "numpy", "pillow", "pyarrow")
_ASKED = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,persistence_mode"

Action = Callable[[], object]


def machine(device: str) -> dict[str, Any]:
    import torch

    names = _in_proc("cpuinfo", "model name")
    sizes = _in_proc("meminfo", "MemTotal")
    found: dict[str, Any] = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": versions_of(*_LIBRARIES),
        "cpu": names[0] if names else platform.machine(),
        "cpu_cores": usable_cores(),
        "memory_gib": round(int(sizes[0].removesuffix(" kB")) / 2**20, 1) if sizes else None,
        "torch_threads": torch.get_num_threads(),
        "device": device,
    }
    if device.startswith("cuda"):
        found["gpu"] = torch.cuda.get_device_name(device)
        cudnn: Any = torch.backends.cudnn
        found["cuda"], found["cudnn"] = torch.version.cuda, cudnn.version()
        found["tf32"] = torch.backends.cuda.matmul.allow_tf32
    return found


def clocks(device: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "load_average": list(os.getloadavg()),
        "cpu_mhz": [float(mhz) for mhz in _in_proc("cpuinfo", "cpu MHz")],
        "cpu_governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
    if device.startswith("cuda"):
        found["nvidia_smi"] = _nvidia(device)
    return found


def seconds_of(
    action: Action, wait: Action, clock: Callable[[], float] = time.perf_counter
) -> float:
    wait()
    start = clock()
    action()
    wait()
    return clock() - start


def synchroniser(device: str) -> Action:
    name = device.partition(":")[0]
    if name not in ("cuda", "mps", "xpu"):
        return lambda: None
    import torch

    kind = getattr(torch, name)
    return lambda: kind.synchronize() if device == "mps" else kind.synchronize(device)


def _in_proc(file: str, name: str) -> list[str]:
    return re.findall(rf"^{name}\s*:\s*(.+)$", _text(f"/proc/{file}") or "", re.MULTILINE)


def _nvidia(device: str) -> dict[str, str] | None:
    import torch

    uuid = torch.cuda.get_device_properties(device).uuid  # a number would count hidden GPUs
    command = ["nvidia-smi", f"--id=GPU-{uuid}", f"--query-gpu={_ASKED}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(zip(_ASKED.split(","), done.stdout.strip().split(", "), strict=False))


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None
