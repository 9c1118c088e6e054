"""What judges say of samples, and how probable it is that they are right, beside what is shown."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.kinds import Row, read_table
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import (
    JudgeAnswer,
    disputed_by_judges,
    disputed_by_rules,
)

JUDGEMENTS: Final = "judgements"
JUDGES: Final = "judges"
PROBABILITY: Final = "probability"
_OF_A_SAMPLE: Final = "judgement"


def with_judgements(dataset: Dataset, samples: pa.Table) -> pa.Table:
    """Returns samples with a column of what is known of each; as they are where nothing is.

    Raises:
      InputError: a file is missing or damaged.
    """
    if not dataset.files(JUDGEMENTS) or not samples.num_rows:
        return samples
    known = read_table(dataset, JUDGEMENTS, "sample_id").combine_chunks()
    places = pc.index_in(samples["sample_id"], value_set=known["sample_id"])
    return samples.append_column(_OF_A_SAMPLE, known.to_struct_array().take(places))


def judged(make: Callable[[list[Row]], Item], rows: list[Row]) -> tuple[Item, list[Row]]:
    """Returns an item with its judgements, and its rows with what it is found by.

    Args:
      make: makes an item of rows.
      rows: of `with_judgements`; of several the least probability counts.
    """
    found = [row.pop(_OF_A_SAMPLE, None) for row in rows]
    known = [each for each in found if each is not None]
    item = make(rows)
    if not known:
        return item, rows
    told = dict(_told(known))
    shown = msgspec.structs.replace(
        item,
        facts=(*item.facts, *((name, str(value)) for name, value in told.items())),
        rows=(*item.rows, *((JUDGEMENTS, each) for each in known)),
    )
    return shown, [{**rows[0], **told}, *rows[1:]]


def _told(known: list[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yields the least probability, and whether judges are for what was made, each by its name."""
    given = [each[PROBABILITY] for each in known if each[PROBABILITY] is not None]
    if given:
        yield PROBABILITY, min(given)
    answers = [msgspec.convert(one, JudgeAnswer) for each in known for one in each["answers"]]
    if answers:
        if disputed_by_judges(answers):
            yield JUDGES, "disagree"
        else:
            yield JUDGES, "against" if disputed_by_rules(answers) else "for"
