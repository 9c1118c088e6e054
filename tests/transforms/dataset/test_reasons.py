from pathlib import Path

from eqforge.transforms.dataset.reasons import STAGE_REASONS, is_known

PAGE = Path(__file__).parents[3] / "docs" / "reasons.md"


def test_the_page_of_reasons_lists_every_reason_with_its_meaning() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}

    assert list(sections) == [stage for stage, reasons in STAGE_REASONS.items() if reasons]
    for stage, section in sections.items():
        reasons = STAGE_REASONS[stage]
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        assert rows == [f"| `{reason}` | {meaning} |" for reason, meaning in reasons.items()]


def test_only_documented_reasons_and_exceptions_are_known() -> None:
    assert is_known("frames", "face_found")
    assert is_known("pairs", "error:ValueError")
    assert not is_known("pairs", "face_found")
    assert not is_known("nothing", "face_found")
