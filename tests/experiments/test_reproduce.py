"""`mtbayes reproduce` and `mtbayes report`, end to end."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from mtbayes.cli import app
from mtbayes.data import datasets
from mtbayes.experiments import EXPERIMENTS
from mtbayes.report import claims

run = CliRunner().invoke


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No data set in any folder, and no network."""
    import sklearn.datasets

    def refuse(*args, **kwargs):
        raise OSError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    monkeypatch.setenv("MTBAYES_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    datasets.load.cache_clear()
    yield
    datasets.load.cache_clear()


def test_a_missing_data_set_skips_its_experiment_alone(tmp_path, nowhere):
    result = run(app, ["reproduce", "mnist", "tlog", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    said = result.output.replace("\n", " ")
    assert "mnist: skipped. mnist is in no local folder" in said
    assert "MTBAYES_DATA" in said
    assert (tmp_path / "tlog" / "fig2-tlog.png").exists()
    assert not (tmp_path / "mnist").exists()


def test_list_names_every_experiment():
    output = run(app, ["reproduce", "--list"]).output
    for name in EXPERIMENTS:
        assert name in output
    assert "Fig. 7" in output


def test_report_of_an_empty_folder_says_what_to_do(tmp_path):
    result = run(app, ["report", str(tmp_path)])
    assert result.exit_code == 1
    assert "mtbayes reproduce all" in result.output


def test_report_writes_page_and_markdown(tmp_path):
    assert run(app, ["reproduce", "tlog", "--out", str(tmp_path)]).exit_code == 0
    (tmp_path / "tlog" / "fig2-tlog.png").unlink()
    page = tmp_path / "page.md"
    result = run(app, ["report", str(tmp_path), "--markdown", str(page)])
    assert result.exit_code == 0, result.output
    assert "data:image/png;base64," in (tmp_path / "report.html").read_text()
    assert page.read_text().startswith("# ")


@pytest.mark.slow
@pytest.mark.skipif("MTBAYES_DATA" not in os.environ, reason="needs the folder in MTBAYES_DATA")
def test_quick_reproduces_everything(tmp_path):
    """Every figure, every claim judged; what should hold even when quick, does."""
    result = run(app, ["reproduce", "all", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "skipped" not in result.output
    for name in EXPERIMENTS:
        assert list((tmp_path / name).glob("*.png")), name
    for path in (tmp_path / "cells").glob("*.json"):
        values = [row[-1] for row in json.loads(path.read_text())["rows"]]
        assert np.isfinite(values).all()
    verdicts = {j.text: j.verdict for j in claims.judge(tmp_path)}
    assert "not measured" not in verdicts.values()
    for text in (
        "A well-chosen t < 1 raises accuracy over t = 1",
        "t = 1 is underconfident, small t overconfident",
        "Robust losses keep the uncontaminated NLL (lose less than a quarter of what t = 1 loses)",
    ):
        assert verdicts[text].startswith("holds"), text
    assert run(app, ["report", str(tmp_path)]).exit_code == 0
