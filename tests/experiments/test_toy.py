"""The toy example against the paper's tables."""

import numpy as np
import pytest

from mtbayes.experiments import toy


def cells(points, *, of_sum):
    settings = [(m, t, float(m)) for m in toy.TABLE_3 for t in toy.T_GRID]
    rows, _ = toy.rows_of(np.array(points), settings, "matched", 0, of_sum=of_sum)
    return np.array([r.value for r in rows]).reshape(4, 6)


PAPER = np.array(list(toy.TABLE_3.values()))


def test_matched_points_give_table_3_for_t_from_one_half():
    ours = cells(toy.MATCHED, of_sum=False)
    assert np.abs(ours - PAPER)[:, :4].max() < 0.02
    for (m, t), paper in toy.TABLE_1.items():
        row, column = list(toy.TABLE_3).index(m), toy.T_GRID.index(t)
        assert ours[row, column] == pytest.approx(paper, abs=0.022)


def test_log_t_of_the_sum_gives_all_of_table_3():
    ours = cells(toy.MATCHED_SUM, of_sum=True)
    assert np.abs(ours - PAPER).max() < 0.021
    assert np.sqrt(np.mean((ours - PAPER) ** 2)) < 0.0065


def test_draws_hold_one_outlier():
    for seed in range(20):
        points = toy.draw(seed)
        assert points.shape == (5,)
        assert (points < -5).sum() >= 1
    assert not np.array_equal(toy.draw(0), toy.draw(1))
    np.testing.assert_array_equal(toy.draw(3), toy.draw(3))
