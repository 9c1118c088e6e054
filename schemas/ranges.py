"""Checks of the ranges of settings."""

from eqforge.schemas.errors import InputError


def check_range(name: str, value: float | None, low: float, high: float) -> None:
    """Checks that a setting, if it is set, lies in a range, ends included.

    Args:
      name: of the setting, `max_changed_area` for `--max-changed-area`.
      value: the setting; None is off.
      low: the least value.
      high: the greatest.

    Raises:
      InputError: it does not; where a percentage was given for a share, the message says so.
    """
    if value is None or low <= value <= high:
        return
    is_percentage = high == 1 and 2 <= value <= 100
    hint = f"; write {value / 100:g} for {value:g} %" if is_percentage else ""
    flag = name.replace("_", "-")
    raise InputError(f"--{flag} {value}: expected {low:g} to {high:g}{hint}")
