"""Data sets: local files first, one clear message where there are none."""

import sys
from types import ModuleType

import numpy as np
import pytest

from mtbayes.data import datasets
from mtbayes.errors import InvalidInput


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of our own, an empty cache, and nothing remembered from other tests."""
    datasets.load.cache_clear()
    monkeypatch.setenv("MTBAYES_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    yield tmp_path
    datasets.load.cache_clear()


def offline(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("no route")

    import sklearn.datasets

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    monkeypatch.setattr(sklearn.datasets, "fetch_california_housing", refuse)


def images(path, rows=6):
    x = np.arange(rows * 784, dtype=np.uint8).reshape(rows, 28, 28)
    np.savez(path, x_train=x, y_train=np.arange(rows) % 3, x_test=x[:2], y_test=np.arange(2))
    return x


def test_local_file_comes_first(folder, monkeypatch):
    offline(monkeypatch)
    x = images(folder / "data" / "mnist.npz")
    found = datasets.load("mnist")
    np.testing.assert_array_equal(found.x, x)
    assert len(found.test_y) == 2
    assert "6 + 2 rows" in found.note


def test_folder_of_the_variable_before_the_cache(folder):
    (folder / "cache" / "mtbayes").mkdir(parents=True)
    images(folder / "cache" / "mtbayes" / "mnist.npz", rows=4)
    assert len(datasets.load("mnist").y) == 4
    images(folder / "data" / "mnist.npz", rows=9)
    datasets.load.cache_clear()
    assert len(datasets.load("mnist").y) == 9


def test_housing_is_split_once_and_for_all(folder):
    y = np.arange(50.0)
    np.savez(folder / "data" / "california.npz", X=np.stack([y, y], axis=1), y=y)
    found = datasets.load("california")
    assert len(found.test_y) == 10
    assert sorted([*found.y, *found.test_y]) == y.tolist()
    np.testing.assert_array_equal(found.test_x[:, 0], found.test_y)
    assert found.test_y.tolist() != sorted(found.test_y)
    datasets.load.cache_clear()
    np.testing.assert_array_equal(datasets.load("california").test_y, found.test_y)


@pytest.mark.parametrize("name", ["mnist", "emnist", "cifar10", "california"])
def test_nothing_to_be_had_is_one_message(name, folder, monkeypatch):
    offline(monkeypatch)
    with pytest.raises(datasets.NotFound) as caught:
        datasets.load(name)
    message = str(caught.value)
    assert f"{name}.npz" in message
    assert "MTBAYES_DATA" in message
    assert "\n" not in message


def test_download_is_kept(folder, monkeypatch):
    import sklearn.datasets

    calls = []

    def fetch(name, **kwargs):
        calls.append(name)
        found = ModuleType("bunch")
        found.data = np.arange(10_020 * 784).reshape(-1, 784) % 256.0
        found.target = np.array(list("0123456789") * 1002)
        return found

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    first = datasets.load("mnist")
    assert first.x.shape == (20, 28, 28)
    assert first.x.dtype == np.uint8
    assert first.test_x.shape == (10_000, 28, 28)
    assert first.y.tolist() == list(range(10)) * 2
    datasets.load.cache_clear()
    np.testing.assert_array_equal(datasets.load("mnist").x, first.x)
    assert calls == ["mnist_784"]
    assert "sklearn" in sys.modules


def test_foreign_and_damaged_files_are_refused(folder):
    np.savez(folder / "data" / "mnist.npz", a=np.zeros(3))
    with pytest.raises(InvalidInput, match="x_train"):
        datasets.load("mnist")
    (folder / "data" / "mnist.npz").write_bytes(b"no numbers")
    with pytest.raises(InvalidInput, match="fresh copy"):
        datasets.load("mnist")


def test_unknown_name():
    with pytest.raises(InvalidInput, match="'mnist'"):
        datasets.load("minst")
