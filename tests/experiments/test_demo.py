"""The demo: its data, its numbers, and who wins."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mtbayes.experiments import demo
from mtbayes.experiments.results import read_columns, read_rows

FEW = 30


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The folder of a run with few epochs, and the progress that was heard of."""
    out, heard = tmp_path_factory.mktemp("results"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "EPOCHS", FEW)
        demo.run(out, heard.append)
    return out / "demo", heard


def values(folder):
    return {(r.method, r.metric): r.value for r in read_rows(folder / "results.csv")}


def test_data_are_dirty_in_training_and_clean_in_test():
    data, (x, y) = demo.digits(), load_digits(return_X_y=True)
    assert (len(data.given), len(data.test_y)) == (1257, 540)  # 70 and 30 % of 1797
    np.testing.assert_array_equal(data.given != data.true, data.wrong)
    assert data.wrong.sum() == 377  # 30 % of 1257
    np.testing.assert_array_equal(x[data.row], data.x)
    np.testing.assert_array_equal(y[data.row], data.true)
    rest = np.setdiff1d(np.arange(len(y)), data.row)
    order, expected = (np.lexsort(rows.T) for rows in (data.test_x, x[rest]))
    np.testing.assert_array_equal(data.test_x[order], x[rest][expected])
    np.testing.assert_array_equal(data.test_y[order], y[rest][expected])


def test_settings_are_those_of_the_methods(short):
    rows = read_rows(short[0] / "results.csv")
    settings = {r.method: (r.m, r.t, r.beta) for r in rows}
    assert list(settings) == ["plain network", "deep ensemble", "Bayes", "ours"]
    assert settings["plain network"] == settings["deep ensemble"] == (1, 1, 1e9)
    assert settings["Bayes"] == (1, 1, 1)
    chosen = values(short[0])["ours", "t_chosen"]
    m = settings["ours"][0]
    assert m in (1, 10)
    assert settings["ours"] == (m, chosen, 50 * m)
    assert [demo.RIVALS[i].posterior.components for i in (0, 1, 2)] == [1, 10, 1]


def test_error_and_accuracy_agree_with_the_diagrams(short):
    diagrams, found = read_columns(short[0] / "reliability.csv"), values(short[0])
    for name in demo.NAMES:
        parts = (diagrams[f"{name} {part}"] for part in ("confidence", "accuracy", "counts"))
        confidence, accuracy, count = (np.nan_to_num(part) for part in parts)
        assert len(count) == 15
        assert count.sum() == 540
        assert found[name, "accuracy"] == pytest.approx(accuracy @ count / 540)
        assert found[name, "ece"] == pytest.approx(abs(accuracy - confidence) @ count / 540)


def test_methods_differ_and_ours_is_ahead(short):
    found = values(short[0])
    assert len({found[name, "nll"] for name in demo.NAMES}) == 4
    for name in demo.NAMES[:-1]:
        assert found["ours", "accuracy"] > found[name, "accuracy"]
        assert found["ours", "nll"] < found[name, "nll"] - 0.2


def test_networks_are_also_measured_when_stopped_early(short):
    found = values(short[0])
    early = {name for name, metric in found if metric == "accuracy_early"}
    assert early == {"plain network", "deep ensemble"}
    assert demo.stopped_after(demo.EPOCHS) == 30
    data, plain = demo.digits(), demo.RIVALS[0]
    again = demo._rival(plain, data, FEW // 10, lambda _: None)
    accuracy = np.mean(again.probs.argmax(axis=1) == data.test_y)
    assert found["plain network", "accuracy_early"] == pytest.approx(accuracy)
    assert accuracy != found["plain network", "accuracy"]


def test_wrong_labels_are_found_and_counted(short):
    found = {metric: v for (name, metric), v in values(short[0]).items() if name == "ours"}
    assert found["wrong"] == 377
    assert found["contamination_true"] == pytest.approx(377 / 1257)
    assert found["contamination_low"] < found["contamination"] < found["contamination_high"]
    assert abs(found["contamination"] - 0.3) < 0.05
    assert 300 < found["found"] <= 377
    assert found["false_alarms"] < 0.1 * (1257 - 377)


def test_suspects_are_the_rows_they_claim_to_be(short):
    suspects, data = read_columns(short[0] / "suspects.csv"), demo.digits()
    x, y = load_digits(return_X_y=True)
    row = suspects["row"].astype(int)
    assert len(set(row)) == 20
    pixels = np.stack([suspects[f"pixel{i}"] for i in range(64)], axis=1)
    np.testing.assert_array_equal(pixels, x[row])
    np.testing.assert_array_equal(suspects["true"], y[row])
    given = dict(zip(data.row, data.given, strict=True))
    np.testing.assert_array_equal(suspects["given"], [given[i] for i in row])
    assert np.all(np.diff(suspects["probability"]) <= 0)
    assert suspects["probability"].min() > 0.9
    assert np.mean(suspects["given"] != suspects["true"]) >= 0.9
    assert np.mean(suspects["suggested"] == suspects["true"]) >= 0.9


def test_progress_never_goes_back_and_ends_at_one(short):
    shares = np.array([p.share for p in short[1]])
    assert shares[0] == 0
    assert shares[-1] == 1
    assert np.all(np.diff(shares) >= 0)
    assert np.diff(shares).max() < 0.1  # the bar also moves inside our own fit
    assert {p.words.split(",")[0] for p in short[1]} == {*demo.NAMES, "done"}


@pytest.mark.slow
def test_ours_is_best_in_every_column_and_long_training_hurts_the_networks(tmp_path):
    demo.run(tmp_path, lambda _: None)
    found = values(tmp_path / "demo")
    for name in demo.NAMES[:-1]:
        assert found["ours", "accuracy"] > found[name, "accuracy"]
        assert found["ours", "ece"] < found[name, "ece"]
        assert found["ours", "nll"] < found[name, "nll"]
    assert found["ours", "contamination_low"] < 0.3 < found["ours", "contamination_high"]
    for name in ("plain network", "deep ensemble"):
        assert found[name, "accuracy_early"] > found[name, "accuracy"] + 0.1
        assert found["ours", "accuracy"] > found[name, "accuracy_early"]
        assert found["ours", "nll"] < found[name, "nll_early"]
