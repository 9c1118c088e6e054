"""Chooses what Cycles renders on."""

from typing import Any, Literal

from eqforge.core.errors import InputError

GPU_KINDS = ("OPTIX", "CUDA")
"""In the order of preference; OptiX needs a newer driver and is faster where there is one."""


def use_device(scene: Any, device: Literal["cpu", "gpu"]) -> None:
    """Sets a Blender scene to render on the CPU, or on all GPUs of one kind.

    Raises:
      InputError: Cycles finds no usable GPU.
    """
    scene.cycles.device = device.upper()
    if device == "gpu":
        _enable_cards()


def _enable_cards() -> None:
    import bpy

    preferences = bpy.context.preferences.addons["cycles"].preferences
    preferences.refresh_devices()
    found: list[str] = []
    for kind in GPU_KINDS:
        found += [f"{name} ({type_})" for name, type_, *_ in preferences.get_device_list(kind)]
        devices = preferences.get_devices_for_type(kind)
        if devices:
            preferences.compute_device_type = kind
            for device in devices:
                device.use = device.type == kind
            return
    raise InputError(
        f"device gpu: Cycles finds no graphics card of the kinds {' or '.join(GPU_KINDS)}; it "
        f"finds {', '.join(dict.fromkeys(found)) or 'nothing'}"
    )
