"""The object detector of models that read region features, whose time belongs to theirs."""

from collections.abc import Sequence

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import read_pixels
from eqforge.evaluation.efficiency.machine import Action, seconds_of
from eqforge.evaluation.efficiency.result import EfficiencySettings
from eqforge.models.pretrained import Weights, import_torch, load_auto, load_model
from eqforge.schemas.records.scores import Identity


class Detector:
    """A detector of Transformers, or its seconds per image; nothing for a model of pixels."""

    name: str | None = None

    def __init__(
        self, settings: EfficiencySettings, model: Identity, reads_pixels: bool, device: str
    ) -> None:
        self._seconds, self._max_pixels = settings.detector_s, settings.max_pixels
        passed = [each for each in (settings.detector, settings.detector_s) if each is not None]
        if reads_pixels and passed:
            raise InputError(f"{model.name} reads pixels; omit --detector and --detector-s")
        if not reads_pixels and len(passed) != 1:
            raise InputError(
                f"{model.name} reads features from a detector. To include the detector's time, "
                "pass either --detector MODEL or --detector-s SECONDS (per image)"
            )
        self.stages = ("detector",) * len(passed)
        if settings.detector is not None:
            weights = Weights.of(settings.detector, "float32", device)
            self._processor = load_auto("AutoImageProcessor", weights)
            self._model = load_model(weights, "AutoModelForObjectDetection")
            self.name = f"{weights.name}@{weights.digest()}"

    def seconds(self, images: Sequence[bytes], wait: Action) -> list[float]:
        """Return the time of each of `stages` for an item with these encoded images."""
        if self._seconds is not None:
            return [self._seconds]
        return [seconds_of(lambda: self._detect(images), wait) for _ in self.stages]

    def _detect(self, images: Sequence[bytes]) -> None:
        from PIL import Image

        for image in images:
            picture = Image.fromarray(read_pixels(image, self._max_pixels), "RGB")
            inputs = self._processor(images=picture, return_tensors="pt").to(self._model.device)
            with import_torch().inference_mode():
                self._model(**inputs)
