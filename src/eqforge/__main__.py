"""The command `eqforge`, as `python -m eqforge`."""

import sys

from eqforge.cli import main

if __name__ == "__main__":
    sys.exit(main())
