"""Answers as a harness writes them, of models that are no models."""

import csv
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.records.questions import Question, form_of

Model = Callable[[Question], str]


def says_a(question: Question) -> str:
    return "A"


def right(question: Question) -> str:
    return question.answer


def wrong(question: Question) -> str:
    return "AB"[1 - question.right]


def right_about_captions(question: Question) -> str:
    return right(question) if question.asks == "text" else wrong(question)


def asked(dataset: Path) -> list[Question]:
    """All questions of a dataset, the last first."""
    found = open_dataset(str(dataset))
    form = form_of(set(found.columns("samples")), "")
    rows = found.rows("samples", ["sample_id", *form.columns])
    return [question for row in rows for question in form.questions(row)][::-1]


def logged(question: Question, answer: Any) -> dict[str, Any]:
    """A line of lmms-eval's log, with what `utils.results` adds."""
    item = {"question_id": question.question_id, "sample_id": question.sample_id}
    about = {"doc_id": 0, "target": question.answer, "filtered_resps": answer, "doc_hash": "0"}
    return about | {"accuracy": item | {"score": 0.0}, "group": item}


def write_log(path: Path, questions: Sequence[Question], model: Model) -> Path:
    lines = [json.dumps(logged(each, model(each))) for each in questions]
    path.write_text("\n".join(lines) + "\n")
    return path


def predictions(questions: Sequence[Question], model: Model) -> list[dict[str, str]]:
    """Rows as VLMEvalKit writes them: the table that it was given, and what was said."""
    return [
        {
            "index": each.question_id,
            "question": each.question,
            **dict(zip("AB", each.options, strict=True)),
            "prediction": model(each),
        }
        for each in questions
    ]


def write_table(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=4))
    elif path.suffix == ".xlsx":
        write_xlsx(path, [list(rows[0]), *(list(row.values()) for row in rows)])
    else:
        with path.open("w", newline="") as stream:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(stream, rows[0], delimiter=delimiter, quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
    return path


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def write_xlsx(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Writes the least that is an Excel file."""
    cells = "".join(
        f"<row>{''.join(map(_cell, row))}</row>"
        for row in rows  #
    )
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/><Override '
        f'PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets><sheet '
        'name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{cells}</sheetData>'
        "</worksheet>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')


def _cell(text: str) -> str:
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
