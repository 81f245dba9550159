"""A fit on disk."""

from threading import Event

import numpy as np
import pytest

from mtbayes import InvalidInput, _files
from mtbayes.solve.checkpoint import Checkpoint


def test_a_checkpoint_is_written_beside_the_fit_and_whole_when_its_block_ends(
    tmp_path, monkeypatch
):
    write, may = _files.write_arrays, Event()

    def slow(*args):
        assert may.wait(60)
        write(*args)

    monkeypatch.setattr(_files, "write_arrays", slow)
    path = tmp_path / "fit"
    with Checkpoint(path, {}) as saved:
        saved.write(np.ones(3), 1, [[1.0]], [])  # returns, though nothing can be written yet
        assert not path.exists()
        may.set()
    state, chunk, trace, _ = saved.restore(np.zeros(3))
    assert (chunk, trace) == (1, [[1.0]])
    np.testing.assert_array_equal(state, np.ones(3))


def test_a_checkpoint_that_cannot_be_written_ends_the_fit(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(_files, "write_arrays", full)
    saved = Checkpoint(tmp_path / "fit", {})
    for chunk, again in ((1, saved.write), (3, lambda *_: saved.__exit__())):
        saved.write(np.ones(3), chunk, [], [])
        with pytest.raises(OSError, match="no space"):
            again(np.ones(3), chunk + 1, [], [])


def test_what_differs_is_told_in_a_few_words(tmp_path):
    def made(model):
        return Checkpoint(tmp_path / "fit", {"model": model})

    same = "Model(network=Stack(row_shape=(4,), layers=("
    with made(f"{same}Dense(50), {'Dense(3), ' * 40}") as saved:
        saved.write(np.ones(3), 1, [], [])
    with pytest.raises(InvalidInput, match=r"differs in model .*--learner, hidden, modes") as told:
        made(f"{same}Dense(7))").restore(np.zeros(3))
    assert "Dense(50)" in str(told.value)
    assert "now ...row_shape=(4,), layers=(Dense(7)))" in str(told.value)
    assert len(str(told.value)) < 330 + len(str(tmp_path))
