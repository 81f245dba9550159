"""`mtbayes fit`: what it says, what it writes, and how it stops."""

import json

import numpy as np
import pytest

import mtbayes
from mtbayes.estimators import RobustClassifier
from mtbayes.tables.model import TableModel


def same(one, other):
    """Models that are equal to the last bit, in estimator and schema."""
    first, second = TableModel.load(one), TableModel.load(other)
    assert first.schema == second.schema
    one, other = first.estimator.fitted_, second.estimator.fitted_
    np.testing.assert_array_equal(np.asarray(one.state), np.asarray(other.state))
    np.testing.assert_array_equal(one.key, other.key)
    np.testing.assert_array_equal(one.training.prediction, other.training.prediction)
    np.testing.assert_array_equal(one.training.suspicion, other.training.suspicion)


def test_says_what_it_did(case):
    said = case.fitted.output.replace("\n", " ")
    assert "Task: tell 2 classes of 'label' apart (high, low), guessed" in said
    assert f"Rows: {case.n}. Columns used: 2 (1 number, 1 category)." in said
    assert "'nothing' (empty)" in said
    assert "'id' (it only counts the rows)" in said
    assert ": 0.7 (1 believes all rows alike" in said
    assert "Wrong values of 'label': about" in said
    assert "mtbayes predict data.mtb" in said
    assert "mtbayes audit data.csv --target label" in said


def test_nothing_but_the_model_is_left(case):
    assert case.model.exists()
    assert not (case.folder / "data.mtb.partial").exists()
    assert not [p for p in case.folder.rglob(".*") if p.is_file()]


def test_the_model_is_an_estimator_of_ours(case):
    model = mtbayes.load(case.model)
    assert isinstance(model, RobustClassifier)
    assert (model.m, model.t, model.epochs, model.random_state) == (3, 0.7, 30, 0)
    assert TableModel.load(case.model).schema.target == "label"


def test_equal_seeds_give_equal_models(case):
    out = case.folder / "again.mtb"
    result = case.run("fit", case.data, "--target", "label", "--model", out, "--json", *case.quick)
    assert result.exit_code == 0, result.output
    same(out, case.model)
    found = json.loads(result.stdout)
    assert found["rows"] == case.n
    assert found["task"] == "classes"
    assert found["columns"] == {"x": "number", "colour": "category"}
    assert set(found["scores"]) == {"accuracy", "accuracy of all rows", "log probability"}
    assert found["wrong"]["low"] <= found["wrong"]["share"] <= found["wrong"]["high"]
    assert result.stderr == ""


def test_ctrl_c_leaves_no_model_and_resume_goes_on(case, checkpoints, monkeypatch):
    out = case.folder / "r.mtb"
    arguments = ["fit", case.data, "--target", "label", "--model", out, *case.quick]
    with monkeypatch.context() as patch:
        # The last of the fits, after the folds.
        before = checkpoints(patch, stop="final.unfinished")
        result = case.run(*arguments)
    assert result.exit_code == 130
    assert "--resume" in result.output
    assert not out.exists()
    assert len(set(before.written)) > 2
    with monkeypatch.context() as patch:
        after = checkpoints(patch)
        assert case.run(*arguments, "--resume", "--quiet").output == ""
    assert set(after.written) == {"final.unfinished"}  # folds were read, not fitted anew
    same(out, case.model)
    assert not (case.folder / "r.mtb.partial").exists()


def test_an_existing_file_is_kept(case):
    before = case.model.read_bytes()
    result = case.run("fit", "data.csv", "--target", "label", folder=case.folder)
    assert result.exit_code == 2
    assert "--force" in result.output
    assert case.model.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--target", "lable"], 2, "Is 'label' meant"),
        (["--target", "label", "--t", "1.5"], 2, "t must lie in [0, 1], got 1.5"),
        (["--target", "label", "--t", "much"], 2, "t must be auto or a number"),
        (["--target", "label", "--m", "0"], 2, "m must be a whole number"),
        (["--target", "label", "--task", "guess"], 2, "classes or number"),
        (["--target", "label", "--model", "."], 2, "must be a file"),
        (["--target", "id", "--task", "classes"], 1, "Name another column"),
        (["--target", "nothing"], 1, "must hold"),
        (["--target", "label", "--model", "data.csv/out.mtb"], 2, "folder that can be written"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_a_line(case, options, code, said):
    never = case.folder / "never.mtb"
    result = case.run("fit", case.data, "--model", never, *options, folder=case.folder)
    assert result.exit_code == code, result.output
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (case.folder / "never.mtb").exists()


def test_debug_shows_where_an_error_comes_from(case):
    result = case.run("fit", case.folder / "none.csv", "--target", "label", "--debug")
    assert isinstance(result.exception, mtbayes.InvalidInput)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "header and no rows"),
        (["1,a"], "must have a column to learn 'label' from"),
        (["1,a", "2,a"], "got 'a' in all 2 rows"),
        (["1,3.5", "2,3.5", "3,3.5"], "got 3.5 in all 3 rows"),
        (["1,", "2,"], "must hold values"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "audit", "compare"])
def test_bad_data_in_a_line(case, command, rows, said):
    path = case.write("bad.csv", ["x,label", *rows])
    result = case.run(command, path, "--target", "label", folder=case.folder / "..")
    assert result.exit_code == 1
    assert said in result.output
    assert len(result.output.splitlines()) == 1
