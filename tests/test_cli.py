"""The command, end to end."""

import csv
import json
import re
import subprocess
import sys
from functools import partial

import joblib
import pytest
from typer.testing import CliRunner

from mtbayes.cli import app
from mtbayes.estimators import RobustClassifier
from mtbayes.experiments import COLUMNS, demo, toy

run = CliRunner().invoke


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """The toy of the paper, computed once, and its screen.

    By threads: two data sets take less time than the start of a process.
    """
    with pytest.MonkeyPatch.context() as patch, joblib.parallel_config("threading"):
        patch.setattr(toy, "DATA_SETS", 2)
        folder = tmp_path_factory.mktemp("toys")
        return folder, run(app, ["reproduce", "toy", "--out", str(folder)])


def test_reproduce_toy(toys):
    tmp_path, result = toys
    assert result.exit_code == 0, result.output
    for name in ("fig1-toy", "fig9-toy", "random-data-sets"):
        assert (tmp_path / "toy" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / "toy" / f"{name}.svg").read_text()
    assert (tmp_path / "tlog" / "fig2-tlog.png").exists()
    rows = list(csv.DictReader((tmp_path / "toy" / "results.csv").read_text().splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert {r["dataset"] for r in rows} == {"matched", "random"}
    assert len({tuple(r.items()) for r in rows}) == len(rows)
    assert re.search(r"\.593 \(\.59\)", result.output)
    assert "fig1-toy.png" in result.output.replace("\n", "")
    assert not [p for p in tmp_path.rglob(".*") if p.is_file()]


def test_drawing_again_computes_nothing(toys, monkeypatch):
    from mtbayes.report import REPORTS

    tmp_path = toys[0]
    first = (tmp_path / "toy" / "fig1-toy.svg").read_bytes()
    monkeypatch.setattr(toy, "fixed_points", None)
    REPORTS["toy"].draw(tmp_path)
    assert (tmp_path / "toy" / "fig1-toy.svg").read_bytes() == first


def test_reproduce_for_machines_and_in_silence(tmp_path):
    found = json.loads(run(app, ["reproduce", "tlog", "--out", str(tmp_path), "--json"]).stdout)
    assert str(tmp_path / "tlog" / "fig2-tlog.png") in found["tlog"]["figures"]
    assert run(app, ["reproduce", "tlog", "--out", str(tmp_path), "--quiet"]).output == ""
    assert set(json.loads(run(app, ["reproduce", "--list", "--json"]).stdout)["experiments"]) > {
        "toy", "tlog", "mnist",
    }  # fmt: skip


def test_the_shell_completes_commands_and_columns(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("area,age,price\n1,2,3\n4,5,6\n")

    def complete(*words):
        settings = {
            "_MTBAYES_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["mtbayes", *words]),
            "COMP_CWORD": str(len(words)),
        }
        return CliRunner().invoke(app, prog_name="mtbayes", env=settings).output.split()

    assert complete("com") == ["compare"]
    assert complete("fit", str(data), "--target", "a") == ["area", "age"]
    assert complete("fit", str(tmp_path / "none.csv"), "--target", "a") == []


def test_unknown_name_lists_the_known():
    result = run(app, ["reproduce", "tyo"])
    assert result.exit_code == 2
    assert "'toy'" in result.output
    assert "'tyo'" in result.output
    assert "Traceback" not in result.output


def test_no_name_is_bad_usage():
    assert run(app, ["reproduce"]).exit_code == 2


def test_list_and_version():
    assert "toy" in run(app, ["reproduce", "--list"]).output
    assert re.match(r"mtbayes \d+\.\d+", run(app, ["--version"]).output)


def test_folder_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run(app, ["reproduce", "tlog", "--out", str(blocked)])
    assert result.exit_code == 1
    assert "--out" in result.output


def test_demo(tmp_path, monkeypatch):
    """The command; what the default learns is tested in tests/experiments."""
    monkeypatch.setattr(demo, "EPOCHS", 2)
    monkeypatch.setattr(
        demo, "RobustClassifier", partial(RobustClassifier, learner="linear", t=0.7)
    )
    result = run(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "demo"
    assert sorted(path.name for path in folder.iterdir()) == [
        "demo.png", "demo.svg", "reliability.csv", "results.csv", "suspects.csv",
    ]  # fmt: skip
    for name in demo.NAMES:
        assert re.search(rf"^ ?{name} +\d+\.\d % +\d+\.\d % +\d\.\d{{3}}", result.output, re.M)
    assert re.search(r"Found \d+ of 377 wrong labels, \d+ false alarm", result.output)
    assert "demo.png" in result.output.replace("\n", "")


def test_demo_sees_a_folder_that_cannot_be_written_before_it_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "learn", None)
    (tmp_path / "file").write_text("")
    result = run(app, ["demo", "--out", str(tmp_path / "file")])
    assert result.exit_code == 1
    assert "--out" in result.output


def test_import_is_light():
    code = "import mtbayes, sys; print({'jax', 'matplotlib', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_public_name_loads():
    import mtbayes

    for name in mtbayes.__all__:
        assert getattr(mtbayes, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mtbayes.nothing


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "mtbayes", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("mtbayes 0.")
