"""What reviewers answer in."""

from typing import Final, Literal

Tool = Literal["pages", "label-studio"]
TOOLS: Final[dict[Tool, str]] = {
    "pages": "pages that reviewers open from disk",
    "label-studio": "tasks and a labelling config for a server of Label Studio",
}
"""Each tool in words."""
