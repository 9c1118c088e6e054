"""What a time was measured on: hardware, clocks and libraries."""

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from eqforge.core.versions import versions_of

_LIBRARIES = ("eqforge", "torch", "transformers", "tokenizers", "numpy", "pillow", "pyarrow")
_ASKED = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,persistence_mode"


def machine(device: str) -> dict[str, Any]:
    """Returns what a time depends on besides the model, as far as this machine reports it.

    Args:
      device: the model's device, as torch names it.
    """
    import torch

    found: dict[str, Any] = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": versions_of(*_LIBRARIES),
        "cpu": cpu_name(),
        "cpu_cores": len(os.sched_getaffinity(0)),
        "memory_gib": _memory_gib(),
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
    """Returns the current clock rates and load of the machine."""
    found: dict[str, Any] = {
        "load_average": list(os.getloadavg()),
        "cpu_mhz": _cpu_mhz(),
        "cpu_governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
    if device.startswith("cuda"):
        found["nvidia_smi"] = _nvidia(device)
    return found


def cpu_name() -> str:
    """Returns the CPU's name, or its architecture where the system does not report one."""
    names = re.findall(r"^model name\s*:\s*(.+)$", _text("/proc/cpuinfo") or "", re.MULTILINE)
    return names[0] if names else platform.machine()


def _cpu_mhz() -> list[float]:
    found = re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", _text("/proc/cpuinfo") or "", re.MULTILINE)
    return [float(mhz) for mhz in found]


def _memory_gib() -> float | None:
    found = re.search(r"^MemTotal:\s*(\d+) kB$", _text("/proc/meminfo") or "", re.MULTILINE)
    return round(int(found[1]) / 2**20, 1) if found else None


def _nvidia(device: str) -> dict[str, str] | None:
    number = device.partition(":")[2] or "0"
    command = ["nvidia-smi", f"--id={number}", f"--query-gpu={_ASKED}", "--format=csv,noheader"]
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
