"""What a fit leaves behind when it is stopped: enough to go on from, and nothing in the way."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from mtbayes.cli import app
from mtbayes.solve.checkpoint import Checkpoint
from mtbayes.tables.model import TableModel

FIT = ["fit", "rows.csv", "--target", "y", "--t", "0.5", "--epochs", "4", "--quiet"]
FIT += ["--learner", "network"]
FOLDER = "rows.mtb.partial"


def write_rows(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 2))
    table = np.column_stack([x, x[:, 0] > 0])
    np.savetxt("rows.csv", table, "%.3f", delimiter=",", header="a,b,y", comments="")


def run(*options):
    return CliRunner().invoke(app, [*FIT, *options])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(0)
    return tmp_path


def stop_after(monkeypatch, name):
    """Ctrl-C once the checkpoint of that name is there."""
    write = Checkpoint.write

    def stopped(self, *arguments):
        write(self, *arguments)
        if self.path.name.startswith(name):
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "write", stopped)


@pytest.mark.parametrize("name", ["fold-1-start", "final-start.", "final."])
def test_other_rows_are_fitted_after_a_stop_without_resume(here, monkeypatch, name):
    with monkeypatch.context() as patched:
        stop_after(patched, name)
        assert run().exit_code == 130
    assert any(file.name.startswith(name) for file in (here / FOLDER).iterdir())
    write_rows(1)
    assert run().exit_code == 0
    assert not (here / FOLDER).exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from mtbayes.cli import app
replace = Path.replace
def killed(self, target):
    if Path(target).name.startswith("final-start"):
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = killed
app(sys.argv[1:])
"""


def test_a_kill_in_the_middle_of_a_write_leaves_nothing_after_the_resumed_fit(here):
    ended = subprocess.run([sys.executable, "-c", KILLED, *FIT], cwd=here, check=False)
    assert ended.returncode == -signal.SIGKILL
    left = {file.name for file in (here / FOLDER).iterdir()}
    assert any(name.startswith(".final-start") for name in left)  # half of a write
    assert run("--resume").exit_code == 0
    assert not (here / FOLDER).exists()
    resumed = TableModel.load(here / "rows.mtb").estimator
    os.remove(here / "rows.mtb")
    assert run().exit_code == 0
    whole = TableModel.load(here / "rows.mtb").estimator
    np.testing.assert_array_equal(resumed.state_.mean, whole.state_.mean)


def test_what_is_not_ours_stays(here):
    (here / FOLDER).mkdir()
    (here / FOLDER / "notes.txt").write_text("mine")
    assert run().exit_code == 0
    assert [file.name for file in (here / FOLDER).iterdir()] == ["notes.txt"]
