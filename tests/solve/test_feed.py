"""Fits to rows that are read as they are needed, and fits over several devices and processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mtbayes.criteria import Criterion
from mtbayes.data.sources import open_stream
from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Gaussian
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.solve import feed, fit
from mtbayes.solve.problem import Problem
from mtbayes.types import Rows

# 1000 rows in batches of 20: 50 steps an epoch, in chunks of 20, 20 and 10.
N, BATCH, STEPS, EPOCHS = 1000, 20, 20, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype(np.float32)
Y = (np.sin(X[:, 0]) + 0.1 * RNG.normal(size=N)).astype(np.float32)
WEIGHT = 0.5 + np.arange(N) % 3
MODEL, CRITERION = Model(mlp((3, 4, 1)), Gaussian(0.1)), Criterion(m=4, t=0.9)


def write(folder: Path) -> None:
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})
    for i, (begin, end) in enumerate([(0, 350), (350, 400), (400, N)]):
        name = folder / f"part-{i}.parquet"
        pq.write_table(table.slice(begin, end - begin), name, row_group_size=64)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    write(tmp_path / "rows")
    return tmp_path / "rows"


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(feed, "STEPS", STEPS)


def learn(x, y=None, **options):
    options = {"epochs": EPOCHS, "batch_size": BATCH} | options
    return fit(MODEL, x, y, CRITERION, key=0, **options)


def same(a, b):
    """Equal to the last bit, state and trace."""
    assert all(map(np.array_equal, jax.tree.leaves(a.state), jax.tree.leaves(b.state)))
    np.testing.assert_array_equal(a.trace, b.trace)
    return True


@pytest.fixture(scope="module")
def by_memory():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "STEPS", STEPS)
        return learn(X, Y, shuffle=False)


def test_a_stream_in_order_ends_where_rows_in_memory_do(folder, by_memory, tmp_path):
    assert len(by_memory.trace) == 3 * EPOCHS  # long epochs go in parts
    assert same(learn(folder, "y", shuffle=False), by_memory)
    held = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=X.shape)
    held[:] = X
    assert same(learn(held, Y, shuffle=False), by_memory)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64])
def test_whole_numbers_of_a_stream_are_the_same_numbers(kind, tmp_path):
    held = np.memmap(tmp_path / "x.bin", kind, "w+", shape=X.shape)
    held[:] = RNG.integers(0, 256, X.shape) - (0 if kind == np.uint8 else 300)
    memory = learn(np.asarray(held, np.float32), Y, shuffle=False)
    assert same(learn(held, Y, shuffle=False), memory)


def test_weights_of_a_stream_count_as_in_memory(folder, tmp_path):
    table = pq.read_table(folder).append_column("w", pa.array(WEIGHT))
    pq.write_table(table, tmp_path / "weighted.parquet")
    stream = learn(tmp_path / "weighted.parquet", "y", weight="w", shuffle=False)
    memory = learn(X, Y, weight=WEIGHT, shuffle=False)
    np.testing.assert_allclose(stream.state.mean, memory.state.mean, atol=1e-6)
    np.testing.assert_allclose(stream.trace, memory.trace, rtol=1e-5)


def batches(source, size, lanes=None):
    """All batches of an epoch [steps, rows, ...], as this process or one with those lanes reads."""
    rows = Rows(source, None, None)
    found = feed.feed_of(Problem(MODEL, CRITERION, rows, epochs=1, batch_size=size), [1, 2])
    if lanes is not None:
        found.lanes = lanes
    return jax.tree.map(lambda *each: np.concatenate(each), *found.chunks(0))[:3]


@pytest.mark.parametrize(("lanes", "size", "steps"), [(1, 20, 50), (7, 21, 48), (4, 64, 16)])
def test_an_epoch_has_each_row_once_and_the_rest_weighs_nothing(lanes, size, steps):
    x, y, weight = batches(open_stream(X, Y, lanes=lanes), size)
    assert weight.shape == (steps, size)
    np.testing.assert_allclose(np.sort(weight.ravel())[-N:], 1 / N)
    assert (np.sort(weight.ravel())[:-N] == 0).all()
    rows = np.column_stack([x[weight > 0], y[weight > 0]])
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(np.column_stack([X, Y]), axis=0))


@pytest.mark.parametrize("processes", [2, 4])
def test_batches_are_the_same_however_many_processes_read_them(folder, processes):
    whole = batches(open_stream(folder, "y", lanes=4), 20)
    each = 4 // processes
    shares = [
        batches(open_stream(folder, "y", lanes=4), 20, range(i * each, (i + 1) * each))
        for i in range(processes)
    ]
    for column, parts in zip(whole, zip(*shares, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), column)


def test_fewer_rows_than_a_batch():
    """All rows are one batch, in lanes too, filled up to 16s with rows that weigh nothing."""
    for lanes, size in ((1, 16), (2, 16), (3, 48)):
        _, y, weight = batches(open_stream(X[:9], Y[:9], lanes=lanes), 64)
        assert weight.shape == (1, size)
        np.testing.assert_array_equal(np.sort(y[weight > 0]), np.sort(Y[:9]))
        np.testing.assert_allclose(weight.sum(), 1)


class Stopped(Exception):
    pass


def stop_after(chunks):
    heard = []

    def callback(progress):
        heard.append(progress)
        if len(heard) == chunks:
            raise Stopped

    return callback


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """An undisturbed fit with two lanes."""
    folder = tmp_path_factory.mktemp("shuffled")
    write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "STEPS", STEPS)
        return learn(open_stream(folder, "y", lanes=2))


@pytest.mark.parametrize("chunks", [1, 3, 5])
def test_a_fit_goes_on_in_the_middle_of_an_epoch(folder, shuffled, tmp_path, chunks):
    saved = tmp_path / "fit"
    with pytest.raises(Stopped):
        learn(open_stream(folder, "y", lanes=2), checkpoint=saved, callback=stop_after(chunks))
    heard = []
    again = learn(open_stream(folder, "y", lanes=2), checkpoint=saved, callback=heard.append)
    assert same(again, shuffled)
    assert len(heard) == 6 - chunks  # no step twice
    assert [round(6 * p.share) for p in heard] == list(range(chunks + 1, 7))


@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_a_file_lost_on_the_way_is_named_and_the_fit_goes_on_when_it_is_back(
    folder, shuffled, tmp_path, damage
):
    saved, path = tmp_path / "fit", folder / "part-2.parquet"
    content = path.read_bytes()

    def lose(progress):
        if damage == "removed":
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content[:100])

    with pytest.raises(InvalidInput, match=r"part-2\.parquet must stay readable"):
        learn(open_stream(folder, "y", lanes=2), checkpoint=saved, callback=lose)
    path.write_bytes(content)
    heard = []
    again = learn(open_stream(folder, "y", lanes=2), checkpoint=saved, callback=heard.append)
    assert len(heard) < 6  # what was done is kept
    assert same(again, shuffled)


def test_a_checkpoint_is_of_the_same_rows_and_lanes(folder, tmp_path):
    saved = tmp_path / "fit"
    with pytest.raises(Stopped):
        learn(open_stream(folder, "y", lanes=2), checkpoint=saved, callback=stop_after(1))
    with pytest.raises(InvalidInput, match="differs in rows, targets or weights"):
        learn(open_stream(folder, "y"), checkpoint=saved)
    table = pq.read_table(folder / "part-1.parquet")
    pq.write_table(table.slice(1), folder / "part-1.parquet")
    with pytest.raises(InvalidInput, match="differs in rows, targets or weights"):
        learn(open_stream(folder, "y", lanes=2), checkpoint=saved)


def test_what_cannot_be_shared_out_is_refused(folder):
    with pytest.raises(InvalidInput, match=r"multiple of the 3 lanes, got 20\. Try 21"):
        learn(open_stream(folder, "y", lanes=3))
    with pytest.raises(InvalidInput, match=r"mesh must be a jax\.sharding\.Mesh, got 2"):
        learn(X, Y, mesh=2)
    with pytest.raises(InvalidInput, match="y must be the name of a column"):
        learn(folder, Y)


def test_rows_that_a_model_cannot_take_are_refused(folder):
    with pytest.raises(InvalidInput, match="x"):
        fit(Model(mlp((2, 4, 1)), Gaussian(0.1)), folder, "y", CRITERION, key=0)


# Several devices and processes.

COMMON = """
    import json, os, sys, time
    import jax, numpy as np
    from mtbayes.criteria import Criterion
    from mtbayes.data.sources import open_stream
    from mtbayes.errors import InvalidInput
    from mtbayes.likelihoods import Gaussian
    from mtbayes.models import Model
    from mtbayes.networks import mlp
    from mtbayes.posteriors import Mixture
    from mtbayes.solve import feed, fit
    from mtbayes.solve.problem import Problem
    from mtbayes.types import Rows

    feed.STEPS = 20
    MODEL, CRITERION = Model(mlp((3, 4, 1)), Gaussian(0.1)), Criterion(m=4, t=0.9)

    def learn(x, y=None, **options):
        options = {"epochs": 2, "batch_size": 20} | options
        return fit(MODEL, x, y, CRITERION, key=0, **options)
"""
VIRTUAL = """
    folder, held = sys.argv[1:]
    x, y = (np.load(held)[name] for name in "xy")
    four = jax.make_mesh((4,), ("rows",))
    both = jax.make_mesh((2, 2), ("rows", "members"))
    found = {"devices": jax.device_count()}

    def says(name, solution):
        found[name] = np.asarray(solution.state.mean).ravel().tolist()

    says("memory", learn(x, y, shuffle=False, mesh=four))
    says("members", learn(folder, "y", shuffle=False, mesh=both))
    lanes = lambda: open_stream(folder, "y", lanes=2)
    two = jax.sharding.Mesh(jax.devices()[:2], ("rows",))
    says("lanes", learn(lanes(), mesh=two))
    try:
        learn(x, y, batch_size=22, mesh=four)
    except InvalidInput as error:
        found["refused"] = str(error)
    says("few", learn(x[:9], y[:9], mesh=four, epochs=1))
    CRITERION = Criterion(m=1, t=0.7, joint=False)
    says("modes alone", learn(x, y, posterior=Mixture(4), shuffle=False))
    says("modes", learn(x, y, posterior=Mixture(4), shuffle=False, mesh=both))
    try:
        learn(x, y, posterior=Mixture(3), mesh=both)
    except InvalidInput as error:
        found["modes refused"] = str(error)
    CRITERION = Criterion(m=4, t=0.9)
    problem = Problem(
        MODEL, CRITERION, Rows(x, y, None), epochs=1, batch_size=20, shuffle=False, mesh=four
    )
    first = next(feed.feed_of(problem, None).chunks(0)).x
    found["shard"] = first.sharding.shard_shape(first.shape)
    print(json.dumps(found))
"""
SHARED = """
    i, count, port, folder, out = (int(v) if v.isdigit() else v for v in sys.argv[1:])
    if count > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", count, i)
    mesh = jax.make_mesh((jax.device_count(),), ("rows",)) if count > 1 else None
    heard = []

    def callback(progress):
        heard.append(progress.share)
        time.sleep(float(os.environ.get("PAUSE", 0)))

    stream = open_stream(folder, "y", lanes=4)
    solution = learn(stream, mesh=mesh, checkpoint=f"{out}.fit", callback=callback)
    mean = np.asarray(solution.state.mean).ravel().tolist()
    found = {"mean": mean, "trace": solution.trace.tolist(), "chunks": len(heard)}
    with open(f"{out}-{i}.json", "w") as file:
        json.dump(found, file)
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A function that starts a script with arguments, and a folder of rows."""
    home = tmp_path_factory.mktemp("scripts")
    (home / "rows").mkdir()
    write(home / "rows")
    for name, text in (("virtual", VIRTUAL), ("shared", SHARED)):
        (home / f"{name}.py").write_text(textwrap.dedent(COMMON) + textwrap.dedent(text))

    def start(name, *arguments, **environment):
        command = [sys.executable, home / f"{name}.py", *map(str, arguments)]
        return subprocess.Popen(
            command,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start, home / "rows"


def test_devices_of_a_mesh_end_where_one_does(started, by_memory, shuffled, tmp_path):
    start, rows = started
    np.savez(tmp_path / "held.npz", x=X, y=Y)
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=4"
    process = start("virtual", rows, tmp_path / "held.npz", XLA_FLAGS=flags)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    found = json.loads(out)
    assert found["devices"] == 4
    assert found["shard"] == [STEPS, BATCH // 4, 3]  # a device holds its share of each batch
    one = np.ravel(by_memory.state.mean)
    np.testing.assert_allclose(found["memory"], one, atol=1e-5)
    np.testing.assert_allclose(found["members"], one, atol=1e-5)
    np.testing.assert_allclose(found["lanes"], np.ravel(shuffled.state.mean), atol=1e-5)
    assert np.isfinite(found["few"]).all()
    np.testing.assert_allclose(found["modes"], found["modes alone"], atol=1e-5)
    assert "divides the 3 members of a step, got 2 devices" in found["modes refused"]
    assert "multiple of the 4 devices that share its rows, got 22. Try 24" in found["refused"]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_together(start, rows, count, out, **environment):
    port = free_port()
    return [start("shared", i, count, port, rows, out, **environment) for i in range(count)]


def result(out, i):
    return json.loads(Path(f"{out}-{i}.json").read_text())


@pytest.fixture(scope="module")
def four_lanes(started):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "STEPS", STEPS)
        return learn(open_stream(started[1], "y", lanes=4))


def agrees(found, solution):
    np.testing.assert_allclose(found["mean"], np.ravel(solution.state.mean), atol=1e-5)
    np.testing.assert_allclose(found["trace"], solution.trace, rtol=1e-4)


def test_two_processes_end_where_one_does(started, four_lanes, tmp_path):
    out = tmp_path / "two"
    processes = run_together(*started, 2, out)
    for process in processes:
        errors = process.communicate(timeout=300)[1]
        assert process.returncode == 0, errors
    first, second = result(out, 0), result(out, 1)
    assert first == second
    agrees(first, four_lanes)


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "count"), [(1, 1), (0, 2)])
def test_a_killed_process_ends_the_other_and_a_restart_goes_on(
    started, four_lanes, tmp_path, victim, count
):
    out = tmp_path / "killed"
    processes = run_together(*started, 2, out, PAUSE="1")
    while not Path(f"{out}.fit").exists():
        assert processes[0].poll() is None, processes[0].communicate()[1]
        time.sleep(0.05)
    os.kill(processes[victim].pid, signal.SIGKILL)
    left = processes[1 - victim]
    errors = left.communicate(timeout=60)[1]
    processes[victim].communicate()
    if victim == 0 and left.returncode != 75:  # JAX may see its coordinator go first, and abort
        assert left.returncode == -signal.SIGABRT
        assert "another task died" in errors
    else:
        assert left.returncode == 75, errors
        told = [line for line in errors.splitlines() if line.startswith("mtbayes: ")]
        assert len(told) == 1
        assert f"they go on from {out}.fit." in told[0]
    again = run_together(*started, count, out)
    for process in again:
        errors = process.communicate(timeout=300)[1]
        assert process.returncode == 0, errors
    found = result(out, 0)
    assert found["chunks"] < 6  # what was done is not done again
    agrees(found, four_lanes)
