"""Lints a stream of text pairs."""

from collections.abc import Iterable, Iterator

from eqforge.generators.text.lints.findings import Finding
from eqforge.generators.text.lints.pair_checks import check_record
from eqforge.generators.text.lints.set_checks import SetChecks
from eqforge.sources.labelled_captions import LabelledCaptions, label_pair
from eqforge.sources.text_pairs import TextPair


def lint_records(records: Iterable[TextPair | LabelledCaptions]) -> Iterator[Finding]:
    """Yields the findings of the records of one file or dataset.

    A record's findings are yielded as it is read, contradictions between records at the end. The
    same records in the same order give the same findings.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.

    Source: defects found in VL-CheckList, ARO and the published hard-positive sets.
    """
    others = SetChecks()
    for given in records:
        record = label_pair(given) if isinstance(given, TextPair) else given
        yield from check_record(record)
        yield from others.add(record)
    yield from others.finish()
