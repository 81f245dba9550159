"""Rows in three files, told apart by their target."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mtbayes.data import sources
from mtbayes.types import Rows

N = 1000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype(np.float32)
ROW = np.arange(N)  # the target, so that a row can be told from its target
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "row": ROW, "c": X[:, 2], "w": ROW % 3 + 0.5})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three files with row groups of three lengths, of which each is read in several blocks."""
    monkeypatch.setattr(sources, "BLOCK", 20)
    for i, (begin, end) in enumerate([(0, 350), (350, 360), (360, N)]):
        name = tmp_path / f"part-{i}.parquet"
        pq.write_table(TABLE.slice(begin, end - begin), name, row_group_size=64)
    return tmp_path


def whole(stream):
    blocks = (block[:3] for block in stream.blocks())
    return Rows(*map(np.concatenate, zip(*blocks, strict=True)))
