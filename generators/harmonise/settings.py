"""Settings of what turns renderings into photographs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from eqforge.core.errors import InputError
from eqforge.core.ranges import check_range
from eqforge.generators.diffusion.settings import Precision, check_precision

Control = Literal["depth", "canny"]
TINY: Final = "tiny"


@dataclass(frozen=True, kw_only=True, slots=True)
class HarmoniseSettings:
    """A diffusion model that draws renderings anew, and what it is held to."""

    harmonise: str | None = None
    """Draw both pictures of each pair anew with this model, so that they look like photographs: a
    folder of Stable Diffusion or SDXL that diffusers saved, or ID@COMMIT on the Hugging Face hub.
    `tiny` makes one of random weights, to try everything but the pictures. Outside what changes the
    second picture is the first one, bit for bit."""

    controlnet: str | None = None
    """The ControlNet that holds the model to the rendering, a folder or ID@COMMIT; without it, the
    one that the model was saved with."""

    control: Control = "depth"
    """What the ControlNet reads: the depth of the scene, or the edges of its rendering."""

    control_scale: float = 1.0
    """Weight of the ControlNet, in [0, 2]."""

    harmonise_strength: float = 0.5
    """Share of the steps that are taken from the rendering with noise, above 0 and up to 1: with
    more the picture is freer, and follows the rendering less."""

    harmonise_steps: int = 30
    """Denoising steps, of which the share above is taken."""

    harmonise_guidance: float = 6.0
    """Weight of the caption."""

    harmonise_style: str = "a photograph, natural light, sharp focus"
    """What follows the caption in the prompt."""

    harmonise_resolution: int | None = None
    """Pictures are drawn at about this many pixels squared, and brought back to their own size;
    without it, at the size that the model was trained on."""

    harmonise_device: str = "cpu"
    """Device as torch names it, such as cuda:0. Only the same one gives the same bytes again."""

    harmonise_precision: Precision = "fp32"
    """Type of the weights and of the computation; fp16 needs a GPU and half the memory."""

    harmonise_threads: int = 4
    """Threads that compute on the CPU. The bytes depend on it, so no machine decides it."""

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
          InputError: one is out of its range, or a part of the settings lacks the model.
        """
        check_range("control_scale", self.control_scale, 0, 2)
        check_range("harmonise_strength", self.harmonise_strength, 0, 1)
        for name in ("harmonise_steps", "harmonise_threads", "harmonise_resolution"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"--{name.replace('_', '-')} {number}: expected 1 or more")
        if int(self.harmonise_steps * self.harmonise_strength) < 1:
            raise InputError(
                f"--harmonise-strength {self.harmonise_strength} of --harmonise-steps "
                f"{self.harmonise_steps}: not even one step is left; give more"
            )
        if self.controlnet is not None and self.harmonise is None:
            raise InputError("--controlnet needs a model to steer: name it with --harmonise")
        check_precision(self.harmonise_precision, self.harmonise_device, "harmonise-")

    @property
    def models(self) -> dict[str, str]:
        """The model and its ControlNet, by what they are, where they come from somewhere."""
        found = {"harmonise": self.harmonise, "controlnet": self.controlnet}
        return {
            part: named(text, self).model
            for part, text in found.items()
            if text is not None and text != TINY
        }

    @property
    def reads_depth(self) -> bool:
        """Whether renderings have to come with their depth."""
        return self.harmonise is not None and self.control == "depth"


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedModel:
    """A model of the hub or in a folder, as the loaders of diffusers' pipelines take it."""

    model: str
    revision: str | None
    device: str
    precision: Precision
    local_files_only: bool = False


def named(text: str, settings: HarmoniseSettings, device: str | None = None) -> NamedModel:
    """Returns a model of a setting: a folder, or an id with a commit behind an @.

    Args:
      text: of the setting.
      settings: say how it is loaded.
      device: another one to load it onto.
    """
    # A folder's own name may hold an @; an id on the hub cannot.
    is_folder = text.startswith((".", "/")) or Path(text).is_dir()
    model, _, commit = (text, "", "") if is_folder else text.partition("@")
    return NamedModel(
        model=model,
        revision=commit or None,
        device=device or settings.harmonise_device,
        precision="fp32" if device else settings.harmonise_precision,
    )
