"""Schedulers by name, with the noise schedule that the model was trained with."""

from typing import Any

from eqforge.generators.diffusion.settings import Scheduler

_CLASSES: dict[Scheduler, str] = {
    "ddim": "DDIMScheduler",
    "pndm": "PNDMScheduler",
    "euler": "EulerDiscreteScheduler",
    "euler-ancestral": "EulerAncestralDiscreteScheduler",
    "ddpm": "DDPMScheduler",
    "dpm-solver": "DPMSolverMultistepScheduler",
}


def make_scheduler(name: Scheduler, own: Any) -> Any:
    """Returns a scheduler of diffusers.

    Args:
      name: of the scheduler; `model` returns `own`.
      own: the scheduler that the model was saved with.
    """
    if name == "model":
        return own
    import diffusers

    # Those that clip by default were made for pixels in [-1, 1]; a latent goes beyond.
    clips = {"clip_sample": False} if name in ("ddim", "ddpm") else {}
    return getattr(diffusers, _CLASSES[name]).from_config(own.config, **clips)


def count_calls(scheduler: Any, steps: int) -> int:
    """Returns how often the network is called for `steps` steps."""
    scheduler.set_timesteps(steps)
    return len(scheduler.timesteps)
