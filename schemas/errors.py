"""The errors eqforge raises on purpose.

EqforgeError
  InputError      the user's input or settings are wrong; the command line exits with 2
  BuildError      a run ended before its dataset was complete; the command line exits with 1
  MissingExtra    an optional package is not installed; the command line exits with 2
"""


class EqforgeError(Exception):
    """Any error eqforge raises on purpose; its text says what to do."""


class InputError(EqforgeError):
    """An input file, a setting or an output folder is not what it has to be."""


class BuildError(EqforgeError):
    """A run ended before its dataset was complete."""


class MissingExtra(EqforgeError):
    """An optional package is missing.

    Args:
      package: the name that could not be imported.
      extra: the extra of eqforge that installs it.
      then: a command that is needed after that; none for most packages.
    """

    def __init__(self, package: str, extra: str, then: str = "") -> None:
        """Names the missing package and what brings it."""
        commands = [f"pip install 'eqforge[{extra}]'", *([then] if then else [])]
        super().__init__(f"{package} is not installed: {' && '.join(commands)}")
        self.package, self.extra, self.then = package, extra, then

    def __reduce__(self) -> tuple[type["MissingExtra"], tuple[str, str, str]]:
        """Lets the error travel from a worker to the driver."""
        return type(self), (self.package, self.extra, self.then)
