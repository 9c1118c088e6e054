"""Packages that are imported at their first use."""

import copy
import pickle
import subprocess
import sys

import numpy

from eqforge.core.late import Image
from eqforge.core.late import numpy as np


def test_they_are_imported_at_their_first_use() -> None:
    code = (
        "import sys; from eqforge.core.late import Image, numpy as np\n"
        "assert not {'numpy', 'PIL'} & set(sys.modules)\n"
        "assert np.arange(3).sum() == 3 and np.random.default_rng(0).random() < 1\n"
        "assert 'numpy' in sys.modules and 'PIL' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_what_they_have_is_the_module_s() -> None:
    assert np.float32 is numpy.float32
    assert np.float32 is numpy.float32  # as it is kept
    assert Image.new("RGB", (2, 1)).size == (2, 1)


def test_copies_and_pickles_are_the_same_package() -> None:
    for other in (copy.deepcopy(np), pickle.loads(pickle.dumps(np))):
        assert other.float32 is numpy.float32
