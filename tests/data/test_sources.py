"""Sources of rows that need not fit in memory: all give the same rows, or say what is wrong."""

import gc

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from mtbayes.data import sources
from mtbayes.data.sources import Columns, is_streamed, open_features, open_stream
from mtbayes.data.stream import Order, Stream
from mtbayes.errors import InvalidInput

from .conftest import ROW, TABLE, N, X, whole


class TestSources:
    def test_a_folder_is_read_in_order_one_row_group_at_a_time(self, folder):
        stream = open_stream(folder, "row", "w")
        assert len(stream) == N
        assert [piece.rows for piece in stream.pieces] == [64] * 5 + [30, 10] + [64] * 10
        assert stream.names == ("a", "b", "c")
        x, y, weight, _ = whole(stream)
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
            x, y, weight, _ = whole(stream)
            np.testing.assert_array_equal(x, X)
            np.testing.assert_array_equal(y, ROW)
            np.testing.assert_array_equal(weight, 1)

    def test_a_partitioned_tree_has_its_keys_among_the_features(self, tmp_path):
        table = TABLE.append_column("year", pa.array(2020 + ROW % 2))
        part = ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
        ds.write_dataset(table, tmp_path, format="parquet", partitioning=part)
        stream = open_stream(tmp_path, "row", "w")
        assert stream.names == ("a", "b", "c", "year")
        x, y, *_ = whole(stream)
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


class TestRefused:
    def written(self, folder, **columns):
        pq.write_table(pa.table({"a": X[:, 0], "row": ROW, **columns}), folder / "x.parquet")
        return folder / "x.parquet"

    def test_unknown_columns_the_nearest_first(self, folder):
        for arguments, name in ((("rows",), "y"), (("row", "rows"), "sample_weight")):
            rule = f"{name}, the name of a column, must be one of 'row'.*got 'rows'"
            with pytest.raises(InvalidInput, match=rule):
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


def test_a_stream_is_taken_as_it_is(folder):
    stream = open_stream(folder, "row", lanes=4)
    assert isinstance(stream, Stream)
    assert open_stream(stream, None) is stream
