"""Rows that need not fit in memory: each is read once an epoch, by one lane, in a known order."""

import gc

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from mtbayes.data import stream as sources
from mtbayes.data.stream import Block, Order, Stream, rechunked
from mtbayes.data.sources import Columns, is_streamed, open_features, open_stream
from mtbayes.errors import InvalidInput

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
    return Block(*map(np.concatenate, zip(*stream.blocks(), strict=True)))


def order_of(stream, lane, order, epoch=0, skip=0):
    blocks = [block.y for block in stream.rows_of(lane, order, epoch, skip)]
    return np.concatenate(blocks) if blocks else np.array([], int)


SHUFFLED = Order((1, 2), window=100)


class TestSources:
    def test_a_folder_is_read_in_order_one_row_group_at_a_time(self, folder):
        stream = open_stream(folder, "row", "w")
        assert len(stream) == N
        assert [piece.rows for piece in stream.pieces] == [64] * 5 + [30, 10] + [64] * 10
        assert stream.names == ("a", "b", "c")
        x, y, weight = whole(stream)
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(y, ROW)
        np.testing.assert_array_equal(weight, ROW % 3 + 0.5)
        assert stream.total == weight.sum()

    def test_only_the_columns_that_are_needed_are_read(self, folder, monkeypatch):
        decode, seen = Columns.__call__, []
        monkeypatch.setattr(
            Columns, "__call__", lambda self, b: seen.append(b.schema.names) or decode(self, b)
        )
        np.testing.assert_array_equal(whole(open_stream(folder, "row", features=["c"])).x, X[:, 2:])
        assert seen[0] == ["c", "row"]

    def test_a_copy_of_an_iterator_lives_as_long_as_the_stream(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        stream = open_stream(iter(TABLE.to_batches()), "row")
        pieces = stream.pieces
        del stream
        assert len(list(pieces[0].blocks())) > 0
        assert len(list(tmp_path.iterdir())) == 1
        del pieces
        gc.collect()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "kind", ["file", "dataset", "filtered", "feather", "iterator", "reader"]
    )
    def test_all_sources_give_the_same_rows(self, folder, kind):
        table = TABLE.drop(["w"])
        if kind == "file":
            pq.write_table(table, folder / "one.parquet")
            source = str(folder / "one.parquet")
        elif kind == "dataset":
            pq.write_table(table, folder / "one.parquet")
            source = ds.dataset(folder / "one.parquet")
        elif kind == "filtered":
            more = pa.concat_tables([table, table.set_column(2, "row", pa.array(ROW + N))])
            pq.write_table(more, folder / "one.parquet", row_group_size=300)
            source = ds.dataset(folder / "one.parquet").filter(ds.field("row") < N)
        elif kind == "feather":
            pyarrow.feather.write_feather(table, folder / "one.arrow", chunksize=100)
            source = folder / "one.arrow"
        elif kind == "iterator":
            source = iter(table.to_batches(max_chunksize=70))
        else:
            source = table.to_reader(max_chunksize=70)
        assert is_streamed(source)
        stream = open_stream(source, "row")
        for _ in range(2):  # an iterator too can be gone through again
            x, y, weight = whole(stream)
            np.testing.assert_array_equal(x, X)
            np.testing.assert_array_equal(y, ROW)
            np.testing.assert_array_equal(weight, 1)

    def test_a_partitioned_tree_has_its_keys_among_the_features(self, tmp_path):
        table = TABLE.append_column("year", pa.array(2020 + ROW % 2))
        part = ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
        ds.write_dataset(table, tmp_path, format="parquet", partitioning=part)
        stream = open_stream(tmp_path, "row", "w")
        assert stream.names == ("a", "b", "c", "year")
        x, y, _ = whole(stream)
        np.testing.assert_array_equal(np.sort(y), ROW)
        np.testing.assert_array_equal(x[:, 3], 2020 + y % 2)
        np.testing.assert_allclose(x[:, :3], X[y])

    def test_an_array_on_disk(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sources, "BLOCK", 300)
        held = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=(N, 3))
        held[:] = X
        stream = open_stream(held, ROW, ROW % 7)
        assert is_streamed(held)
        assert not is_streamed(X)
        assert [piece.rows for piece in stream.pieces] == [300, 300, 300, 100]
        assert str(tmp_path / "x.bin") in stream.pieces[0].name
        found = whole(stream)
        np.testing.assert_array_equal(found.x, X)
        np.testing.assert_array_equal(found.weight, ROW % 7)
        assert not isinstance(next(stream.blocks()).x, np.memmap)

    @pytest.mark.parametrize(
        "kind", [pa.list_(pa.float32(), 3), pa.list_(pa.float32()), pa.large_list(pa.float32())]
    )
    def test_a_column_of_lists_is_as_many_features(self, tmp_path, kind):
        lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3).cast(kind)
        table = pa.table({"a": -X[:, 0], "pixels": lists, "row": ROW})
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=99)
        stream = open_stream(tmp_path / "x.parquet", "row", lanes=3)  # lanes cut row groups
        np.testing.assert_array_equal(whole(stream).x, np.column_stack([-X[:, 0], X]))
        middle = next(stream.rows_of(1, Order(None), 0))
        np.testing.assert_array_equal(middle.x[:, 1:], X[middle.y])

    def test_digits_of_wide_columns_are_kept(self, tmp_path):
        seconds = 1_700_000_000 + ROW
        pq.write_table(pa.table({"seconds": seconds, "row": ROW}), tmp_path / "x.parquet")
        np.testing.assert_array_equal(whole(open_stream(tmp_path, "row")).x[:, 0], seconds)
        assert whole(open_stream(tmp_path, "row")).x.itemsize == 8

    def test_features_alone_by_name(self, folder):
        stream = open_features(folder, ("c", "a"))
        np.testing.assert_array_equal(whole(stream).x, X[:, [2, 0]])
        assert open_features(stream) is stream


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
    rows = Block(X, ROW, np.ones(N))
    parts = [rows.take(slice(a, b)) for a, b in ((0, 1), (1, 1), (1, 400), (400, N))]
    found = list(rechunked(iter(parts), 300))
    assert [len(block.y) for block in found] == [300, 300, 300, 100]
    np.testing.assert_array_equal(np.concatenate([block.y for block in found]), ROW)
    assert list(rechunked(iter([]), 5)) == []


def test_a_sample_is_uniform_and_sorted(folder):
    stream = open_stream(folder, "row", "w")
    count = np.zeros(N)
    for seed in range(200):
        which, block = stream.sample(100, seed)
        np.testing.assert_array_equal(block.y, which)
        np.testing.assert_array_equal(block.x, X[which])
        assert len(np.unique(which)) == 100
        count[which] += 1
    # 200 draws with probability .1 each: mean 20, deviation 4.2; of 1000 none is off by 6 of these.
    assert abs(count - 20).max() < 26
    thirds = [part.sum() / 20_000 for part in np.array_split(count, 3)]
    np.testing.assert_allclose(thirds, 1 / 3, atol=0.02)
    which, block = stream.sample(5000, 0)
    np.testing.assert_array_equal(which, ROW)


class TestRefused:
    def written(self, folder, **columns):
        pq.write_table(pa.table({"a": X[:, 0], "row": ROW, **columns}), folder / "x.parquet")
        return folder / "x.parquet"

    def test_unknown_columns_the_nearest_first(self, folder):
        for arguments in (("rows",), ("row", "rows")):
            with pytest.raises(InvalidInput, match=r"column must be one of 'row'.*got 'rows'"):
                open_stream(folder, *arguments)
        with pytest.raises(InvalidInput, match="column must be one of"):
            open_features(folder, ("a", "height"))

    def test_a_target_that_is_no_name(self, folder):
        with pytest.raises(InvalidInput, match=r"y must be the name of a column .* got ndarray"):
            open_stream(folder, ROW)
        with pytest.raises(InvalidInput, match="sample_weight must be the name of a column"):
            open_stream(folder, "row", ROW)

    @pytest.mark.parametrize(
        ("column", "values", "message"),
        [
            ("t", ["x"] * N, "column 't' must hold numbers, got string"),
            ("t", [None, *X[1:, 0]], "column 't' must have a value in each row"),
            ("t", [0.5] * (N - 1) + [np.nan], "column 't' must be finite, got nan"),
            ("t", [[1.0], [1.0, 2.0]] * (N // 2), "column 't' must hold lists of one length"),
            ("t", [["x"]] * N, "column 't' must hold numbers, got list"),
            ("row", [*ROW[1:], None], "column 'row' must have a value in each row"),
        ],
    )
    def test_columns_that_are_no_numbers_by_their_name_and_file(
        self, tmp_path, column, values, message
    ):
        path = self.written(tmp_path, **{column: values})
        with pytest.raises(InvalidInput, match=rf"x\.parquet: {message}"):
            whole(open_stream(path, "row"))

    def test_lists_with_gaps(self, tmp_path):
        kind = pa.list_(pa.float32(), 2)
        path = self.written(tmp_path, t=pa.array([None] + [[1.0, 2.0]] * (N - 1), kind))
        with pytest.raises(InvalidInput, match="'t' must have a value in each row"):
            whole(open_stream(path, "row"))

    @pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
    def test_weights_that_are_none(self, tmp_path, bad):
        path = self.written(tmp_path, w=[1.0] * (N - 1) + [bad])
        with pytest.raises(InvalidInput, match="column 'w' must hold finite weights"):
            open_stream(path, "row", "w").total  # noqa: B018

    def test_weights_that_are_all_0(self, tmp_path):
        path = self.written(tmp_path, w=np.zeros(N))
        with pytest.raises(InvalidInput, match="weights must not be 0 for all rows"):
            open_stream(path, "row", "w").total  # noqa: B018

    def test_sources_without_rows(self, tmp_path):
        pq.write_table(TABLE.slice(0, 0), tmp_path / "x.parquet")
        with pytest.raises(InvalidInput, match="rows must be at least one"):
            open_stream(tmp_path, "row")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InvalidInput, match=r"got none in .*empty"):
            open_stream(tmp_path / "empty", "row")
        for nothing in ([], [1, 2], TABLE.slice(0, 0).to_batches()):
            with pytest.raises(InvalidInput, match="must give record batches of pyarrow, got"):
                open_stream(iter(nothing), "row")

    @pytest.mark.parametrize("stray", ["readme.txt", "part-9.parquet"])
    def test_a_file_that_is_damaged_from_the_start_is_named(self, folder, stray):
        (folder / stray).write_bytes((folder / "part-0.parquet").read_bytes()[:300])
        with pytest.raises(InvalidInput, match=f"{stray} must be readable"):
            open_stream(folder, "row")

    def test_lists_whose_length_changes_from_file_to_file(self, tmp_path):
        for length in (2, 3):
            rows = {"t": [[1.0] * length] * 10, "row": range(10)}
            pq.write_table(pa.table(rows), tmp_path / f"{length}.parquet")
        with pytest.raises(InvalidInput, match=r"one shape, got \(2,\) and \(3,\)"):
            list(rechunked(open_stream(tmp_path, "row").blocks(), 15))

    def test_sources_that_are_none(self, tmp_path):
        (tmp_path / "x.parquet").write_bytes(b"no Parquet")
        for source in (tmp_path / "missing", tmp_path / "x.parquet"):
            with pytest.raises(InvalidInput, match=f"{source.name}"):
                open_stream(source, "row")
        with pytest.raises(InvalidInput, match="columns beside 'row', got none"):
            open_stream(iter(TABLE.select(["row"]).to_batches()), "row")

    def test_lanes_and_lengths(self, folder):
        with pytest.raises(InvalidInput, match="lanes must be a whole number"):
            open_stream(folder, "row", lanes=0)
        with pytest.raises(InvalidInput, match="one entry for each of the 1000 rows"):
            open_stream(X, ROW[:-1])
        with pytest.raises(InvalidInput, match="weight must have shape"):
            open_stream(X, ROW, ROW[:-1])

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


def test_a_stream_is_taken_as_it_is(folder):
    stream = open_stream(folder, "row", lanes=4)
    assert isinstance(stream, Stream)
    assert open_stream(stream, None) is stream
