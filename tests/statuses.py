"""The exit status of a command, however it ends."""

from collections.abc import Callable, Sequence


def status_of(main: Callable[..., int]) -> Callable[[Sequence[str]], int]:
    """Returns a function that runs a command line and gives the exit status."""

    def run(argv: Sequence[str]) -> int:
        try:
            return main(list(argv))
        except SystemExit as left:
            return int(left.code or 0)

    return run
