"""`eqforge build` and `import`: the command line comes before Beam, which takes seconds."""

from collections.abc import Sequence

from eqforge.core import signals
from eqforge.core.console import session
from eqforge.core.errors import reported_errors
from eqforge.pipelines.shared.command import parse
from eqforge.pipelines.shared.media import inputs_from_stores
from eqforge.pipelines.shared.pipeline import Configured, Pipeline


def import_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Imports a benchmark as its command line says; returns the exit status."""
    return build_command(pipeline, argv, "import")


def build_command(
    pipeline: Pipeline[Configured], argv: Sequence[str], command: str = "build"
) -> int:
    """Builds a dataset as its command line says; returns the exit status."""
    with reported_errors(goes_on=True), session(), inputs_from_stores():
        program = f"eqforge {command} {pipeline.name}"
        config, beam_args = parse(pipeline.config, pipeline.defaults, argv, program)
        pipeline.needs(config)
        with signals.idle():  # an exception may leave a library half loaded
            from eqforge.pipelines.shared.driver import build_and_tell
        build_and_tell(pipeline, config, beam_args)
        return 0
    return 2
