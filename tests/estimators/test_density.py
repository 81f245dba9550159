"""`RobustDensity`: a density, outliers beside it, and both in the user's units."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from mtbayes import InvalidInput, RobustDensity, load


def dirty(n=500, seed=0):
    """A standard normal of which every tenth row is uniform on [-30, 30]."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    x[::10, 0] = rng.uniform(-30, 30, len(x[::10]))
    return x


@pytest.fixture(scope="module")
def fitted():
    return RobustDensity(epochs=60, random_state=0).fit(dirty())


@pytest.fixture(scope="module")
def clusters():
    """Two of them in the plane, the second twice as wide, and 30 rows anywhere."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(-5, 0.5, (300, 2)), rng.normal(5, 1, (300, 2))])
    x[::20] = rng.uniform(-30, 30, (30, 2))
    return x, RobustDensity(epochs=60, random_state=0).fit(x)


# Units.


def test_units_change_the_log_density_by_a_constant_alone():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(150, 2))
    x[:10] *= 20
    one = RobustDensity(epochs=30, random_state=0).fit(x)
    two = RobustDensity(epochs=30, random_state=0).fit(1e6 * x + 3e6)
    assert one.t_ == two.t_
    np.testing.assert_allclose(
        two.score_samples(1e6 * x + 3e6), one.score_samples(x) - 2 * np.log(1e6), atol=1e-3
    )
    np.testing.assert_allclose(two.outlier_probability_, one.outlier_probability_, atol=1e-3)


# The density.


def test_density_integrates_to_1(fitted):
    grid = np.linspace(-60, 60, 20_001)
    density = np.exp(fitted.score_samples(grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-4)


def test_density_is_that_of_the_good_rows(fitted):
    grid = np.linspace(-6, 6, 2001)
    density = np.exp(fitted.score_samples(grid[:, None]))
    assert 0.5 * np.trapezoid(np.abs(density - norm.pdf(grid)), grid) < 0.1


def test_score_is_the_total(fitted):
    x = dirty(50, seed=3)
    assert fitted.score(x) == pytest.approx(fitted.score_samples(x).sum())


def test_samples_follow_the_density(fitted):
    drawn = fitted.sample(20_000, random_state=1)
    assert drawn.shape == (20_000, 1)
    np.testing.assert_array_equal(drawn, fitted.sample(20_000, random_state=1))
    edges = np.linspace(-3, 3, 13)
    fine = np.linspace(-3, 3, 12 * 100 + 1)
    density = np.exp(fitted.score_samples(fine[:, None]))
    expected = [np.trapezoid(density[i : i + 101], fine[i : i + 101]) for i in range(0, 1200, 100)]
    np.testing.assert_allclose(np.histogram(drawn, edges)[0] / 20_000, expected, atol=0.015)


def test_two_clusters_are_both_found(clusters):
    _, model = clusters
    drawn = model.sample(4000, random_state=0)
    near = [np.linalg.norm(drawn - centre, axis=1) < 4 for centre in (-5, 5)]
    assert [part.mean() for part in near] == pytest.approx([0.5, 0.5], abs=0.15)
    assert near[0].mean() + near[1].mean() > 0.97
    peaks = model.score_samples([[-5, -5], [5, 5], [0, 0]])
    assert min(peaks[:2]) > peaks[2] + 5


# Outliers.


def test_contamination_is_close_to_the_truth(fitted):
    value, low, high = fitted.contamination_
    assert low < value < high
    assert low < 0.1 < high
    assert value == pytest.approx(0.1, abs=0.04)


def test_far_rows_are_outliers_and_near_ones_are_not(fitted):
    x = dirty()
    far, near = np.abs(x[:, 0]) > 6, np.abs(x[:, 0]) < 2
    assert fitted.outlier_probability_[far].min() > 0.9
    assert fitted.outlier_probability_[near].max() < 0.1
    assert fitted.t_ < 1
    assert fitted.row_weight_.max() == 1
    assert fitted.row_weight_[far].max() < fitted.row_weight_[near].min()
    new = fitted.find_outliers([[0.0], [15.0], [1e5], [1e300]])
    np.testing.assert_allclose(new, [0, 1, 1, 1], atol=0.05)


def test_outliers_around_clusters_are_found(clusters):
    x, model = clusters
    wrong = np.zeros(len(x), bool)
    wrong[::20] = True
    said = model.outlier_probability_ > 0.5
    assert said[wrong].mean() > 0.9
    assert said[~wrong].mean() < 0.02
    assert model.contamination_.low < 0.05 < model.contamination_.high


def test_clean_rows_are_left_alone():
    x = np.random.default_rng(4).normal(size=(500, 1))
    model = RobustDensity(random_state=0).fit(x)
    assert model.contamination_.low == 0
    assert model.contamination_.value < 0.02
    assert model.outlier_probability_.mean() < 0.02


def test_one_wild_value_does_no_harm():
    x = np.random.default_rng(5).normal(size=(150, 2))
    x[7, 1] = 1e200
    model = RobustDensity(epochs=30, random_state=0).fit(x)
    assert np.isfinite(model.score_samples(x)).all()
    assert np.isfinite(model.sample(100, random_state=0)).all()


def test_table_lists_all_t(fitted):
    assert [row["t"] for row in fitted.score_path_] == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert fitted.t_ in [row["t"] for row in fitted.score_path_]


# Manners.


def test_history_is_of_the_last_fit(fitted):
    losses = [row["loss"] for row in fitted.history_]
    assert losses
    assert np.isfinite(losses).all()


def test_equal_seeds_give_equal_densities():
    x = dirty(60)
    one, two, other = (RobustDensity(t=0.7, epochs=10, random_state=s).fit(x) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.score_samples(x), two.score_samples(x))
    assert (one.score_samples(x) != other.score_samples(x)).any()


def test_weights_are_counts_and_order_does_not_matter():
    x = dirty(60)
    weight = np.tile([1.0, 2.0, 0.0], 20)
    one = RobustDensity(epochs=10, random_state=0).fit(x, sample_weight=weight)
    repeated = np.repeat(x, weight.astype(int), axis=0)[::-1]
    two = RobustDensity(epochs=10, random_state=0).fit(repeated)
    np.testing.assert_array_equal(one.score_samples(x), two.score_samples(x))
    assert one.outlier_probability_.shape == one.row_weight_.shape == (60,)
    assert (one.row_weight_[weight == 0] == 0).all()
    left_out = one.find_outliers(x[weight == 0])
    np.testing.assert_array_equal(one.outlier_probability_[weight == 0], left_out)


def test_t_may_be_given_and_few_rows_are_enough():
    x = dirty(12)
    model = RobustDensity(t=0.7, components=20, m=10, epochs=5, random_state=0).fit(x)
    assert model.t_ == 0.7
    assert model.score_path_ == []
    assert np.isfinite(model.score_samples(x)).all()
    assert [r["t"] for r in RobustDensity(t=0.7, epochs=10).fit(dirty(60)).score_path_] == [0.7]


def test_saved_and_loaded_density_is_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "density")
    again = load(tmp_path / "density")
    x = dirty(100, seed=6)
    np.testing.assert_array_equal(again.score_samples(x), fitted.score_samples(x))
    np.testing.assert_array_equal(again.find_outliers(x), fitted.find_outliers(x))
    np.testing.assert_array_equal(again.sample(5, 0), fitted.sample(5, 0))
    np.testing.assert_array_equal(again.outlier_probability_, fitted.outlier_probability_)
    assert again.get_params() == fitted.get_params()
    assert again.contamination_ == fitted.contamination_
    assert again.score_path_ == fitted.score_path_


def test_names_of_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    x = pandas.DataFrame(dirty(60), columns=["height"])
    model = RobustDensity(t=0.7, epochs=10).fit(x)
    assert model.feature_names_in_.tolist() == ["height"]
    assert model.n_features_in_ == 1
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(x.rename(columns={"height": "weight"}))


def test_progress_bar_is_shown_on_request(capsys):
    RobustDensity(t=0.7, epochs=10, verbose=1).fit(dirty(60))
    assert "RobustDensity" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([[1.0], [np.nan]], "NaN"),
        ([[1.0], [np.inf]], "infinity"),
        ([[1.0, 2.0]], "1 sample"),
        ([1.0, 2.0, 3.0], "2D array"),
        (np.array([["a"], ["b"]], object), "must hold numbers"),
    ],
)
def test_bad_rows_are_named(x, said):
    with pytest.raises(ValueError, match=said):
        RobustDensity().fit(x)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"components": 0}, "components must be a whole number"),
        ({"components": 4}, "m must divide the posterior's 4 components"),
        ({"m": 2.5}, "m must be a whole number"),
        ({"t": 1.5}, r"t must lie in \[0, 1\]"),
        ({"t": "low"}, "t must be a number"),
        ({"beta": -1}, "beta must lie"),
        ({"epochs": 0}, "epochs must be"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(InvalidInput, match=said):
        RobustDensity(**options).fit(dirty(30))


def test_new_rows_must_fit(fitted):
    with pytest.raises(ValueError, match="2 features, but RobustDensity is expecting 1"):
        fitted.score_samples([[1.0, 2.0]])
    with pytest.raises(ValueError, match="NaN"):
        fitted.find_outliers([[np.nan]])
    with pytest.raises(InvalidInput, match="n_samples must be"):
        fitted.sample(0)


@pytest.mark.parametrize("method", ["score_samples", "score", "find_outliers", "sample", "save"])
def test_unfitted_density_says_so(method):
    argument = 1 if method == "sample" else [[1.0]]
    with pytest.raises(NotFittedError):
        getattr(RobustDensity(), method)(argument)


def test_weights_of_0_alone_are_refused():
    with pytest.raises(ValueError, match=r"0 for all rows|non-zero"):
        RobustDensity().fit(dirty(30), sample_weight=np.zeros(30))
