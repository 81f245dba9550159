"""Files and outputs as they should not be: one clear line, and nothing lost."""

import errno
import json
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import typer

from mtbayes.commands import outputs
from mtbayes.commands.outputs import unfinished, writer
from mtbayes.commands.screen import BadUsage, Screen, as_json, shown

N = 60


@pytest.mark.parametrize(
    "values",
    [pa.nulls(N), pa.array([None] * N, pa.int64()), pa.array([[1, 2]] * N), pa.array([b"a"] * N)],
    ids=["null", "all null", "lists", "bytes"],
)
def test_a_target_that_cannot_be_learned_is_told_in_a_line(case, tmp_path, values):
    table = pa.table({"x": np.sqrt(np.arange(N)), "y": values})
    pyarrow.parquet.write_table(table, tmp_path / "some.parquet")
    found = case.run("fit", "some.parquet", "--target", "y", folder=tmp_path)
    assert found.exit_code == 1
    assert found.stderr.startswith("mtbayes: ")
    assert found.stderr.count("\n") == 1


def test_a_seed_below_0_is_told_with_its_value(case):
    found = case.run("fit", case.data, "--target", "label", "--seed", "-1")
    assert found.exit_code == 2
    assert "got -1" in found.stderr


def claim(path, ready, go_on):
    with unfinished(path, resume=False, force=False):
        ready.set()
        go_on.wait()


def test_two_commands_do_not_write_one_output(tmp_path):
    ready, go_on = threading.Event(), threading.Event()
    path = tmp_path / "some.mtb"
    other = threading.Thread(target=claim, args=(path, ready, go_on))
    other.start()
    ready.wait()
    with (
        pytest.raises(BadUsage, match="another one is at work"),
        unfinished(path, resume=False, force=False),
    ):
        pass
    go_on.set()
    other.join()
    with unfinished(path, resume=False, force=False):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_called_so(capsys):
    with pytest.raises(typer.Exit), Screen(quiet=False, as_json=False, debug=False):
        raise OSError(errno.ENOSPC, "No space left on device")
    said = capsys.readouterr().err
    assert "disk is full" in said
    assert "None" not in said


def test_what_is_shown_does_nothing_to_a_terminal(capsys):
    screen = Screen(quiet=False, as_json=False, debug=False)
    screen.line("a\x1b[2Jb\u202ec")
    screen.note("a\x1b]0;title\x07b")
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "a\\x1b[2Jb\\u202ec" in said.out
    assert shown("café 漢字") == "café 漢字"


def test_numbers_that_json_does_not_know_are_null():
    found = {"a": np.float64("inf"), "b": [float("nan"), 1.5], "c": (np.int64(2), "é")}
    assert json.loads(as_json(found)) == {"a": None, "b": [None, 1.5], "c": [2, "é"]}


def test_cells_that_look_like_formulas_are_marked_on_request(tmp_path):
    batch = pa.record_batch({"=a": ["=1+1", "+1", "-1", "@x", "x=1", None], "n": [-1.5] * 6})
    for safe, first in ((False, "=1+1"), (True, "'=1+1")):
        path = tmp_path / f"{safe}.csv"
        with writer(path, safe=safe) as write:
            write(batch)
        found = pyarrow.csv.read_csv(path)
        assert found.column(0)[0].as_py() == first
        assert found.column(0)[4].as_py() == "x=1"
        assert found.column("n").to_pylist() == [-1.5] * 6
    assert found.column_names == ["'=a", "n"]


def test_predictions_beside_the_row_or_an_id(case, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("id,x,colour\nk7,0.5,red\nk3,-1.0,red\n")
    for name, expected in (("id", ["k7", "k3"]), ("row", [1, 2])):
        out = tmp_path / f"{name}.csv"
        found = case.run("predict", case.model, new, "-o", out, "--id", name)
        assert found.exit_code == 0, found.output
        table = pyarrow.csv.read_csv(out)
        assert table.column_names[:2] == [name, "prediction"]
        assert table.column(name).to_pylist() == expected
    found = case.run("predict", case.model, new, "-o", tmp_path / "o.csv", "--id", "ix")
    assert found.exit_code == 2
    assert "--id must be a column of the file, got 'ix'. Is 'x' meant" in found.stderr


def test_new_categories_are_named_with_the_number_of_their_rows(case, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("x,colour\n0.5,green\n-1.0,red\n0.1,green\n")
    found = case.run("predict", case.model, new, "-o", tmp_path / "out.csv")
    assert "2 rows have a 'colour' that no fitted row had: 'green' (2)" in found.stderr


def test_numbers_in_another_style_are_refused_with_their_line(case, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text('x;colour\n0.5;red\n"1,25";red\n')
    found = case.run("predict", case.model, new, "-o", tmp_path / "out.csv")
    assert found.exit_code == 1
    assert "'1,25' in line 3" in found.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_model_whose_columns_are_not_its_own_is_refused(case, tmp_path):
    from mtbayes._files import read_arrays, write_arrays

    arrays, settings = read_arrays(case.model)
    own = settings["beside"]["dict"]
    for change in (
        {"columns": own["columns"][:1]},
        {"task": "number"},
        {"whole": True},
        {"seen": "AAAA"},
        {"columns": [{"kind": "number", "name": 3, "fill": "x", "gaps": 1, "decimal": "."}]},
    ):
        path = tmp_path / "other.mtb"
        write_arrays(path, arrays, settings | {"beside": {"dict": own | change}})
        found = case.run("predict", path, case.data)
        assert found.exit_code == 1, change
        assert found.stderr.count("\n") == 1


def test_an_output_that_came_meanwhile_is_not_written_over(tmp_path):
    path = tmp_path / "some.mtb"
    path.write_text("of another command")
    again = unfinished(path, resume=False, force=False)
    with pytest.raises(BadUsage, match="must be a new file"), again:
        pass
    assert path.read_text() == "of another command"
    with unfinished(path, resume=False, force=True):
        pass


def test_a_lock_that_was_removed_is_no_lock(tmp_path, monkeypatch):
    """One that ends between the opening of its file and the claim to it."""
    path = tmp_path / "some.mtb"
    real, gone = outputs.fcntl.flock, []

    def flock(file, how):
        if not gone:
            gone.append((tmp_path / ".some.mtb.lock").unlink())
        real(file, how)

    monkeypatch.setattr(outputs.fcntl, "flock", flock)
    with unfinished(path, resume=False, force=False):
        assert (tmp_path / ".some.mtb.lock").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_all_limits_of_a_disk_are_called_so(capsys, code):
    with pytest.raises(typer.Exit), Screen(quiet=False, as_json=False, debug=False):
        raise OSError(code, "no room")
    assert "disk is full, or a limit" in capsys.readouterr().err


def test_a_limit_to_the_size_of_files_is_told_and_leaves_nothing(case, tmp_path):
    """In a process of its own, which alone has the limit."""
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "from mtbayes.cli import run; sys.argv[0] = 'mtbayes'; run()"
    )
    out = tmp_path / "out.csv"
    given = ["predict", str(case.model), str(case.data), "-o", str(out)]
    found = subprocess.run([sys.executable, "-c", script, *given], capture_output=True, text=True)
    assert found.returncode == 1
    assert "disk is full, or a limit" in found.stderr
    assert "Traceback" not in found.stderr
    assert list(tmp_path.iterdir()) == []
