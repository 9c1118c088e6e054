"""What eqforge leans on inside of libraries, each in one module that names the version.

A library that changes there fails here, with a sentence, before it fails in a build.
"""

import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import eqforge

RUNNERS = "apache_beam/runners"
WORKER_HANDLERS = f"{RUNNERS}/portability/fn_api_runner/worker_handlers.py"


@dataclass(frozen=True, kw_only=True)
class Door:
    """A use of what a library does not promise.

    Attributes:
      user: the one module of eqforge that does so.
      package: the library, or `python`.
      version: the start of the version that it was written for, which the module names.
      file: the library's file.
      texts: what has to stand in it.
    """

    user: str
    package: str
    version: str
    file: str
    texts: tuple[str, ...] = ()


DOORS = (
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file="apache_beam/utils/interactive_utils.py",
        texts=(
            "def is_in_ipython():",
            "  if is_in_ipython():\n    from apache_beam.runners.interactive",
        ),
    ),
    Door(
        user="core/errors.py",
        package="python",
        version="3.11",
        file="threading.py",
        texts=("_start_new_thread(",),
    ),
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file=WORKER_HANDLERS,
        texts=(
            *("class SubprocessSdkWorkerHandler(GrpcWorkerHandler)", "self._futures_by_id"),
            *("def start_worker(", "def stop_worker(", "self._worker_command_line"),
        ),
    ),
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file=WORKER_HANDLERS,
        texts=("import grpc\n", "grpc.server(", "def port_from_worker(self, port)"),
    ),
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file=f"{RUNNERS}/worker/worker_pool_main.py",
        texts=("import grpc\n", "grpc.server("),
    ),
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file=f"{RUNNERS}/portability/abstract_job_service.py",
        texts=("import grpc\n",),
    ),
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file=f"{RUNNERS}/worker/sdk_worker.py",
        texts=("print(traceback_string, file=sys.stderr)",),
    ),
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file="apache_beam/options/pipeline_options.py",
        texts=("view = cls(self._flags)", "view._all_options = self._all_options"),
    ),
    Door(
        user="transforms/engines/beam_patches.py",
        package="apache-beam",
        version="2.77",
        file="apache_beam/transforms/userstate.py",
        texts=("def get_dofn_specs(dofn: 'DoFn') -> tuple[set[StateSpec], set[TimerSpec]]:",),
    ),
    Door(
        user="transforms/engines/run.py",
        package="apache-beam",
        version="2.77",
        file=f"{RUNNERS}/worker/data_plane.py",
        texts=("Channel closed prematurely",),
    ),
    Door(
        user="transforms/engines/run.py",
        package="apache-beam",
        version="2.77",
        file=f"{RUNNERS}/common.py",
        texts=("\" [while running '%s']\"",),
    ),
    Door(
        user="transforms/engines/run.py",
        package="apache-beam",
        version="2.77",
        file=f"{RUNNERS}/portability/portable_runner.py",
        texts=("'Pipeline %s failed in state %s: %s'",),
    ),
    Door(
        user="evaluation/scoring/pictures.py",
        package="torch",
        version="2.13",
        file="torch/utils/data/dataloader.py",
        texts=("DataLoader worker (pid",),
    ),
    Door(
        user="generators/scenes/kubric_import.py",
        package="kubric-nightly",
        version="2023.12.27",
        file="kubric/file_io.py",
        texts=("import tensorflow as tf", "tf.io.gfile.GFile("),
    ),
    Door(
        user="generators/scenes/kubric_import.py",
        package="scikit-learn",
        version="1.9",
        file="sklearn/utils/murmurhash.pyx",
        texts=("def murmurhash3_32(",),
    ),
    Door(
        user="generators/scenes/blender.py",
        package="kubric-nightly",
        version="2023.12.27",
        file="kubric/renderer/blender.py",
        texts=(
            *("def clear_and_reset_blender_scene(", "def postprocess("),
            *("self.exr_output_node", "class AttributeSetter", "def register_object3d_setters("),
            *("def set_exr_output_path(", " blender_utils.activate_render_passes("),
            " blender_utils.set_up_exr_output_node(",
        ),
    ),
    Door(
        user="generators/scenes/blender.py",
        package="kubric-nightly",
        version="2023.12.27",
        file="kubric/renderer/blender_utils.py",
        texts=(
            *("def prepare_blender_object(", "def activate_render_passes("),
            "def set_up_exr_output_node(",
            "def replace_cryptomatte_hashes_by_asset_index(",
        ),
    ),
)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: f"{door.user}-{door.file}")
def test_a_library_is_inside_as_it_was_when_its_user_was_written(door: Door) -> None:
    try:
        is_python = door.package == "python"
        found = sys.version.split()[0] if is_python else version(door.package)
    except PackageNotFoundError:
        pytest.skip(f"{door.package} is not installed")
    what = f"{door.package} is {found}, and {door.user} leans on the inside of {door.version}"
    assert f"{found}.".startswith(f"{door.version}."), f"{what}: see that it still works there"
    users = Path(eqforge.__file__).parent / door.user
    assert door.version in users.read_text(), f"{door.user} does not say for which version it is"
    folder = sysconfig.get_path("stdlib" if is_python else "purelib")
    text = Path(folder, door.file).read_text(encoding="utf-8")
    missing = [part for part in door.texts if part not in text]
    assert not missing, f"{what}: {door.file} holds no {missing[0]!r} any more"
