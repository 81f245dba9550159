"""Rows that need not fit in memory: each is read once an epoch, by one lane, in a known order."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from mtbayes.data.sources import open_stream
from mtbayes.data.stream import Order, rechunked
from mtbayes.errors import InvalidInput
from mtbayes.types import Rows

from .conftest import ROW, TABLE, N, X, whole


def order_of(stream, lane, order, epoch=0, skip=0):
    blocks = [block.y for block in stream.rows_of(lane, order, epoch, skip)]
    return np.concatenate(blocks) if blocks else np.array([], int)


SHUFFLED = Order((1, 2), window=100)


class TestOrder:
    @pytest.mark.parametrize("lanes", [1, 3, 8])
    @pytest.mark.parametrize("order", [Order(None), SHUFFLED])
    def test_lanes_cover_each_row_once_an_epoch(self, folder, lanes, order):
        stream = open_stream(folder, "row", lanes=lanes)
        for epoch in range(2):
            rows = [order_of(stream, lane, order, epoch) for lane in range(lanes)]
            assert [len(r) for r in rows] == [stream.lane_rows(lane) for lane in range(lanes)]
            assert np.ptp([len(r) for r in rows]) <= 1
            np.testing.assert_array_equal(np.sort(np.concatenate(rows)), ROW)

    def test_a_lane_holds_the_same_rows_each_epoch_so_its_files_are_its_own(self, folder):
        stream = open_stream(folder, "row", lanes=4)
        for lane in range(4):
            first, second = (np.sort(order_of(stream, lane, SHUFFLED, e)) for e in (0, 1))
            np.testing.assert_array_equal(first, second)
            np.testing.assert_array_equal(first, np.arange(250 * lane, 250 * (lane + 1)))

    def test_a_lane_reads_no_file_of_another(self, folder):
        stream = open_stream(folder, "row", lanes=4)
        (folder / "part-0.parquet").unlink()  # rows 0 to 350: of lanes 0 and 1
        for lane in (2, 3):
            assert len(order_of(stream, lane, SHUFFLED)) == 250
        with pytest.raises(InvalidInput, match=r"part-0\.parquet must stay readable"):
            order_of(stream, 0, SHUFFLED)

    def test_orders_differ_by_epoch_seed_and_lane_and_by_nothing_else(self, folder):
        stream = open_stream(folder, "row", lanes=2)
        base = order_of(stream, 0, SHUFFLED)
        np.testing.assert_array_equal(order_of(stream, 0, SHUFFLED), base)
        others = [
            order_of(stream, 0, SHUFFLED, epoch=1),
            order_of(stream, 0, Order((1, 3), 100)),
            order_of(stream, 1, SHUFFLED) - 500,
        ]
        for other in others:
            assert (other == base).mean() < 0.05

    @pytest.mark.parametrize("order", [Order(None), SHUFFLED])
    @pytest.mark.parametrize("skip", [0, 1, 99, 100, 101, 250, 499, 500])
    def test_an_epoch_goes_on_in_the_middle(self, folder, order, skip):
        stream = open_stream(folder, "row", lanes=2)
        rest = order_of(stream, 1, order, 3)[skip:]
        np.testing.assert_array_equal(order_of(stream, 1, order, 3, skip), rest)

    def test_what_is_skipped_is_not_read(self, folder):
        stream = open_stream(folder, "row")
        (folder / "part-0.parquet").unlink()
        np.testing.assert_array_equal(order_of(stream, 0, Order(None), skip=355), ROW[355:])

    def test_a_window_mixes_rows_and_no_further(self, tmp_path):
        pq.write_table(TABLE, tmp_path / "x.parquet", row_group_size=N)
        found = order_of(open_stream(tmp_path, "row"), 0, SHUFFLED)
        for window in range(10):
            rows = found[100 * window :][:100]
            np.testing.assert_array_equal(np.sort(rows), 100 * window + np.arange(100))
            # Of a random order a row moves by 33 places on average, with a deviation of 1.6.
            assert 27 < np.abs(rows - 100 * window - np.arange(100)).mean() < 40

    def test_row_groups_come_in_a_random_order_too(self, folder):
        firsts = [order_of(open_stream(folder, "row"), 0, Order((7,), 64), e)[0] for e in range(8)]
        assert len({first // 64 for first in firsts}) > 4

    def test_memory_is_bounded_by_the_window(self, folder, monkeypatch):
        """What is read is at most a window and a block ahead of what was asked for."""
        stream = open_stream(folder, "row")
        read = []
        counted = stream.map(lambda block: read.append(len(block.y)) or block)
        given = 0
        for block in counted.rows_of(0, SHUFFLED, 0):
            given += len(block.y)
            assert sum(read) <= given + 20
            assert len(block.y) <= 100

    @pytest.mark.parametrize(
        ("lanes", "width", "window"),
        [(1, 36, 2**18), (4, 36, 2**16), (1, 2**12, 2**15), (16, 2**20, 2**12)],
    )
    def test_windows_are_smaller_where_rows_are_wide_and_lanes_many(
        self, folder, lanes, width, window
    ):
        stream = open_stream(folder, "row", lanes=lanes)
        assert Order.of(stream, (1,), width) == Order((1,), window)

    def test_changes_are_made_to_each_block_in_turn(self, folder):
        stream = open_stream(folder, "row").map(lambda b: b._replace(y=b.y + 1))
        stream = stream.map(lambda b: b._replace(y=b.y * 2))
        np.testing.assert_array_equal(whole(stream).y, (ROW + 1) * 2)


def test_blocks_are_cut_anew():
    rows = Rows(X, ROW, np.ones(N))
    parts = [rows.take(slice(a, b)) for a, b in ((0, 1), (1, 1), (1, 400), (400, N))]
    found = list(rechunked(iter(parts), 300))
    assert [len(block.y) for block in found] == [300, 300, 300, 100]
    np.testing.assert_array_equal(np.concatenate([block.y for block in found]), ROW)
    assert list(rechunked(iter([]), 5)) == []


def test_a_sample_is_uniform_and_sorted(folder):
    stream = open_stream(folder, "row", "w")
    count = np.zeros(N)
    for seed in range(100):
        which, block = stream.sample(100, seed)
        np.testing.assert_array_equal(block.y, which)
        np.testing.assert_array_equal(block.x, X[which])
        assert len(np.unique(which)) == 100
        count[which] += 1
    # 100 draws with probability .1 each: mean 10, deviation 3; of 1000 none is off by 6 of these.
    assert abs(count - 10).max() < 18
    thirds = [part.sum() / 10_000 for part in np.array_split(count, 3)]
    np.testing.assert_allclose(thirds, 1 / 3, atol=0.02)  # more than 4 deviations
    which, block = stream.sample(5000, 0)
    np.testing.assert_array_equal(which, ROW)


class TestRefused:
    def test_lists_whose_length_changes_from_file_to_file(self, tmp_path):
        for length in (2, 3):
            rows = {"t": [[1.0] * length] * 10, "row": range(10)}
            pq.write_table(pa.table(rows), tmp_path / f"{length}.parquet")
        with pytest.raises(InvalidInput, match=r"one shape, got \(2,\) and \(3,\)"):
            list(rechunked(open_stream(tmp_path, "row").blocks(), 15))

    def test_a_file_that_is_damaged_after_it_was_opened(self, folder):
        stream = open_stream(folder, "row")
        path = folder / "part-2.parquet"
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(InvalidInput, match=r"part-2\.parquet must stay readable") as caught:
            whole(stream)
        assert "\n" not in str(caught.value)
        path.write_bytes(content)
        np.testing.assert_array_equal(whole(stream).y, ROW)

    def test_a_file_with_other_rows_than_when_it_was_opened(self, tmp_path):
        path = tmp_path / "x.arrow"
        pyarrow.feather.write_feather(TABLE.select(["a", "row"]), path)
        stream = open_stream(ds.dataset(path, format="feather"), "row")
        pyarrow.feather.write_feather(TABLE.select(["a", "row"]).slice(0, 900), path)
        with pytest.raises(InvalidInput, match=r"must not change .* got 900 rows in place of 1000"):
            whole(stream)
