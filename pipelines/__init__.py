"""One runnable module per dataset; each reads top to bottom like its paper's figure."""

import logging


def _is_not_about_gcp(record: logging.LogRecord) -> bool:
    return "apitools not found" not in record.getMessage()


# Beam, which every module here wires, warns on import of an extra that only Dataflow needs.
logging.getLogger().addFilter(_is_not_about_gcp)
