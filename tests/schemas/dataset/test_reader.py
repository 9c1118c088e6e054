import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.schemas.dataset.reader import read_file_batches

GROUPS, GROUP_BYTES = 16, 1_000_000


def test_one_row_group_is_held_at_a_time(tmp_path: Path) -> None:
    path, rng = tmp_path / "f.parquet", np.random.default_rng(0)
    schema = pa.schema([("value", pa.binary())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for _ in range(GROUPS):
            rows = [rng.bytes(GROUP_BYTES // 10) for _ in range(10)]
            writer.write_batch(pa.record_batch([pa.array(rows)], schema=schema))
    tracemalloc.start()
    sizes = [batch.num_rows for batch in read_file_batches(str(path), rows=4)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sizes == [4, 4, 2] * GROUPS
    assert peak < 6 * GROUP_BYTES
