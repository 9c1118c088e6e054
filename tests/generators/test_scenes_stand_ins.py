"""kubric runs without TensorFlow, and without importing all of scikit-learn."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.renders import needs_blender

CODE = """
import sys
from eqforge.generators.scenes.kubric_import import import_kubric
import_kubric(sys.argv[1])
import kubric.renderer
from kubric import file_io
from kubric.renderer.blender_utils import mm3hash
import tensorflow as tf

file_io.write_json({"one": 1}, sys.argv[1] + "/new/folder/file.json")
print(file_io.read_json(sys.argv[1] + "/new/folder/file.json"))
tf.io.gfile.copy(sys.argv[1] + "/new/folder/file.json", sys.argv[1] + "/copy.json")
try:
    tf.io.gfile.copy(sys.argv[1] + "/new/folder/file.json", sys.argv[1] + "/copy.json")
except FileExistsError:
    print("exists")
print(mm3hash("object_0000"))
print(*sorted({"pandas", "scipy.stats", "tensorflow_datasets"} & sys.modules.keys()))
"""


def mm3hash(name: bytes) -> int:
    """The hash of the Cryptomatte specification, 1.2.0: MurmurHash3_x86_32, kept a finite float."""
    state = 0
    tail = len(name) % 4
    blocks = [name[at : at + 4] for at in range(0, len(name) - tail, 4)]
    for block in [*blocks, name[len(name) - tail :]]:
        mixed = int.from_bytes(block, "little") * 0xCC9E2D51 & 0xFFFFFFFF
        mixed = (mixed << 15 | mixed >> 17) * 0x1B873593 & 0xFFFFFFFF
        state ^= mixed
        if len(block) == 4:
            state = (state << 13 | state >> 19) & 0xFFFFFFFF
            state = state * 5 + 0xE6546B64 & 0xFFFFFFFF
    state ^= len(name)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> shift) * factor & 0xFFFFFFFF
    state ^= state >> 16
    return state ^ 1 << 23 if state >> 23 & 255 in (0, 255) else state


@needs_blender
def test_kubric_finds_what_it_calls_and_takes_nothing_else_along(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    read, exists, hashed, others = done.stdout.splitlines()[-4:]
    assert (read, exists, others) == ("{'one': 1}", "exists", "")
    assert int(hashed) == mm3hash(b"object_0000")


@pytest.mark.parametrize(
    ("name", "expected"), [(b"", 0x00800000), (b"hello", 0x248BFA47), (b"hello, world", 0x149BBB7F)]
)
def test_the_reference_above_gives_published_values(name: bytes, expected: int) -> None:
    assert mm3hash(name) == expected
