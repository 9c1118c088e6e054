"""`eqforge build`: the command line comes first, and Beam, which takes seconds to import, after."""

from collections.abc import Sequence

from eqforge.pipelines.shared.command import parse
from eqforge.pipelines.shared.media import inputs_from_stores
from eqforge.pipelines.shared.pipeline import Configured, Pipeline
from eqforge.schemas import signals
from eqforge.schemas.console import session
from eqforge.schemas.errors import reported_errors


def build_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Builds a dataset as its command line says; returns the exit status."""
    with reported_errors(goes_on=True), session(), inputs_from_stores():
        program = f"eqforge build {pipeline.name}"
        config, beam_args = parse(pipeline.config, pipeline.defaults, argv, program)
        pipeline.needs(config)
        with signals.idle():  # an exception may leave a library half loaded
            from eqforge.pipelines.shared.driver import build_and_tell
        build_and_tell(pipeline, config, beam_args)
        return 0
    return 2
