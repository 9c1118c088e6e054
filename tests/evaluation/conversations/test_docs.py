"""The page on conversations says what is there."""

from pathlib import Path

from eqforge.evaluation.conversations.answers import CHANCE, REASONS
from eqforge.evaluation.conversations.questions import FORMS

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "conversations.md").read_text(
    encoding="utf-8"
)


def test_the_page_names_every_form_reason_and_column() -> None:
    reasons = set(REASONS) - {"not_finite", "image_failed"}  # of scores, which answers are not
    for name in (*FORMS, *reasons, *CHANCE):
        assert f"`{name}`" in PAGE, name


def test_the_page_says_what_a_coin_gets() -> None:
    for name, chance in CHANCE.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
        assert float(row.split("|")[3]) == 100 * chance
