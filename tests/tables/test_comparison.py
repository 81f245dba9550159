"""Methods compared on splits: what is tested, and verdicts in words."""

import joblib
import numpy as np

from mtbayes._files import Unfinished
from mtbayes.experiments.runner import compute
from mtbayes.progress import silent
from mtbayes.tables import comparison
from mtbayes.tables.comparison import ALL, BELIEVED, Comparison, cells_of
from mtbayes.tables.contenders import OURS
from mtbayes.tables.model import Settings
from mtbayes.tables.scores import Trial

from .conftest import of_labels


def test_a_quarter_of_every_class_is_tested():
    y = np.repeat([0, 1, 2], [40, 37, 2])
    parts = [comparison.test_rows(y, 3, 0, r) for r in range(4)]
    for part in parts:
        assert len(part) in (19, 20)
        counts = np.bincount(y[part], minlength=3)
        np.testing.assert_allclose(counts, np.bincount(y) / 4, atol=1)
        assert counts[2] < 2  # one is left to learn from
    assert len({tuple(part) for part in parts}) == 4
    np.testing.assert_array_equal(parts[0], comparison.test_rows(y, 3, 0, 0))


def test_it_says_so_when_ours_loses():
    rng = np.random.default_rng(3)
    tests = []
    for _ in range(5):
        y, _, predicted = of_labels(rng, 100)
        tests.append(
            Trial(
                y,
                {OURS: {"0": predicted["1"], "1": predicted["0"]}, "a": predicted, "b": predicted},
            )
        )
    found = Comparison.of(tests, 400)
    first, second = found.words()
    assert first.startswith("Best by accuracy: a (")
    assert "ahead of mtbayes by" in first
    assert first.endswith("more than splits scatter.")
    assert "log score" in second
    np.testing.assert_array_less(
        found.values[ALL]["a"]["log score"], found.values[BELIEVED]["a"]["log score"]
    )


def test_cells_run_wherever_joblib_is_told_to(tmp_path, cheap):
    x = np.random.default_rng(0).normal(size=(80, 2))
    y = (x[:, 0] > 0).astype(int)
    alone_in = Unfinished(tmp_path / "alone")
    cells = cells_of(x, y, 2, 2, Settings("auto", 3, None, 0))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        shared = compute(cells, Unfinished(tmp_path / "threads").file, silent)
    alone = compute(cells, alone_in.file, silent, 1)
    assert [c["tables"] for c in shared] == [c["tables"] for c in alone]
    other = cells_of(x + 1, y, 2, 2, Settings("auto", 3, None, 0))
    compute(other, alone_in.file, silent, 1)
    assert len(list(alone_in.folder.iterdir())) == 8  # other rows, other cells
