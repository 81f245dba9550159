"""The studies of images, housing and the prior, on small made-up data."""

import math
import os

import numpy as np
import pytest

from mtbayes.criteria import Criterion
from mtbayes.data import datasets
from mtbayes.experiments import EXPERIMENTS, How, housing, images, prior
from mtbayes.experiments.housing import HousingSpec, housing_rows
from mtbayes.experiments.images import EDGES, ImageSpec, image_rows
from mtbayes.experiments.methods import DEEP, GIBBS, METHODS, MODES, ROBUST
from mtbayes.experiments.prior import PriorSpec
from mtbayes.experiments.results import read_rows, read_table
from mtbayes.experiments.runner import Study, key
from mtbayes.progress import silent


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory):
    """Digits that a network tells apart at once, and houses whose price is a line."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    y = np.arange(400) % 10
    x = np.zeros((400, 28, 28), np.uint8)
    x[np.arange(400), 2 * y, :] = 255
    half = {"x_train": x[:300], "y_train": y[:300], "x_test": x[300:], "y_test": y[300:]}
    np.savez(folder / "mnist.npz", **half)
    features = rng.normal(size=(500, 8))
    np.savez(folder / "california.npz", X=features, y=3 + features[:, 0])
    before = os.environ.get("MTBAYES_DATA")
    os.environ["MTBAYES_DATA"] = str(folder)
    datasets.load.cache_clear()
    yield folder
    datasets.load.cache_clear()
    os.environ.pop("MTBAYES_DATA")
    if before is not None:
        os.environ["MTBAYES_DATA"] = before


def test_three_labels_in_ten_are_wrong_and_test_rows_are_clean(data):
    rows = image_rows("mnist", 200, 0.3, seed=4)
    truth = rows.x.reshape(-1, 28, 28).max(axis=2).argmax(axis=1) // 2
    assert rows.touched.sum() == 60
    np.testing.assert_array_equal(rows.y != truth, rows.touched)
    assert len(rows.test_y) == 100
    again, other = (image_rows("mnist", 200, 0.3, seed=s) for s in (4, 5))
    np.testing.assert_array_equal(again.y, rows.y)
    assert (other.y != rows.y).any()


def test_housing_s_targets_lie_in_the_unit_interval_and_some_are_noise(data):
    clean, dirty = housing_rows(None, 0.0, seed=1), housing_rows(None, 0.3, seed=1)
    both = np.concatenate([clean.y, clean.test_y])
    assert 0 <= both.min() < both.max() <= 1
    assert dirty.touched.sum() == 120
    np.testing.assert_array_equal(dirty.y[~dirty.touched], clean.y[~dirty.touched])
    noise = dirty.y[dirty.touched]
    assert abs(noise.mean() - 0.5) < 4 / math.sqrt(12 * 120)
    np.testing.assert_array_equal(dirty.test_y, clean.test_y)


def test_every_method_has_the_same_regulariser():
    weights = {
        name: method.criterion(10, 0.5, 5.0).regulariser_weight(1000)
        for name, method in METHODS.items()
    }
    assert weights.pop("Bayes") == pytest.approx(1 / 1000)
    assert weights.pop(DEEP) == weights.pop(MODES) == 0
    assert list(weights.values()) == pytest.approx([1 / 5000] * len(weights))


def test_one_t_means_as_much_for_every_robust_loss():
    """The gradient of each robust loss in log p has the factor p^(1-t)."""
    import jax
    import jax.numpy as jnp

    log_p = jnp.log(jnp.array([[0.01, 0.5]]))
    for name in (GIBBS, "β-divergence", "γ-divergence", MODES):
        criterion = METHODS[name].criterion(10, 0.7, 5.0)
        slope = jax.grad(lambda v, c=criterion: c.rows(v, jnp.zeros_like(v), *c.numbers()).sum())(
            log_p
        )[0]
        assert float(slope[0] / slope[1]) == pytest.approx((0.01 / 0.5) ** 0.3, rel=1e-4), name


def test_adversarial_rows_are_moved_for_the_worse_by_one_step():
    import jax.numpy as jnp

    from mtbayes.experiments.adversarial import Adversarial
    from mtbayes.likelihoods import Gaussian
    from mtbayes.members import Points
    from mtbayes.models import Model
    from mtbayes.networks import mlp

    line = Model(mlp((2, 1)), Gaussian(1.0))
    theta = Points(jnp.array([[2.0, -1.0, 0.0]]))  # y = 2 x1 - x2
    x, y = jnp.array([[1.0, 1.0]]), jnp.array([0.5])  # predicted 1, off by 0.5
    assert float(Adversarial(line, 0.0).log_lik(theta, x, y)[0, 0]) == pytest.approx(
        float(line.log_lik(theta, x, y)[0, 0])
    )
    # A step of 0.1 for each feature moves the prediction by 0.1·(2+1), away from y.
    both = [-0.5 * off**2 - 0.5 * math.log(2 * math.pi) for off in (0.5, 0.8)]
    found = Adversarial(line, 0.1).log_lik(theta, x, y)
    assert float(found[0, 0]) == pytest.approx(sum(both) / 2, rel=1e-5)


@pytest.mark.slow
def test_images_from_spec_to_files(tmp_path):
    spec = ImageSpec("mnist", None, 5, 1, t_grid=(1.0, 0.5), m=3, members=10)
    Study("mnist", "", spec, spec, "mnist").run(tmp_path, silent, How())
    rows = read_rows(tmp_path / "mnist" / "results.csv")
    found = {(r.method, r.t, r.metric): r.value for r in rows}
    assert {(r.method, r.t) for r in rows} == {
        (ROBUST, 1.0), (ROBUST, 0.5), (GIBBS, 1.0), (GIBBS, 0.5), (DEEP, 1.0),
    }  # fmt: skip
    assert found[ROBUST, 0.5, "accuracy"] > 0.9
    # The log loss has to allow for the noise; a robust one need not.
    assert found[ROBUST, 1.0, "overconfidence"] < -0.1
    assert found[ROBUST, 1.0, "overconfidence"] < found[ROBUST, 0.5, "overconfidence"]
    table = read_table(tmp_path / "mnist" / "reliability.csv")
    for name, t in ((ROBUST, 1.0), (GIBBS, 0.5), (DEEP, 1.0)):
        part = (table["method"] == name) & (table["t"] == t)
        counts = table["counts"][part]
        assert counts.sum() == 100
        gap = np.abs(table["accuracy"][part] - table["confidence"][part])
        assert np.nansum(gap * counts) / 100 == pytest.approx(found[name, t, "ece"], abs=1e-6)


def test_histogram_holds_every_row_once():
    nll = np.array([0.05, 0.05, 7.9, 500.0])
    found = images._histogram(nll, np.array([False, True, False, True]))
    assert found["clean"].sum() == found["corrupted"].sum() == 2
    assert found["clean"][0] == found["corrupted"][0] == 1
    assert found["clean"][-1] == found["corrupted"][-1] == 1
    assert len(found["left"]) == len(EDGES) - 1


@pytest.mark.slow
def test_housing_from_spec_to_files(tmp_path):
    spec = HousingSpec(
        None, 40, 1, (0.7,), (0.3,), rivals=("β-divergence", housing.LEARNED),
        methods=(ROBUST, DEEP), t_grid=(1.0, 0.7), epsilons=(0.3,), members=10,
    )  # fmt: skip
    Study("housing", "", spec, spec, "california").run(tmp_path, silent, How())
    rows = read_rows(tmp_path / "housing" / "results.csv")
    found = {(r.method, r.t, r.metric): r.value for r in rows}
    assert len(found) == len(rows) == 10
    assert found[ROBUST, 0.7, "nll"] < found[ROBUST, 1.0, "nll"]
    assert found["β-divergence", 0.7, "rmse"] < found[DEEP, 1.0, "rmse"]
    assert {(r.method, r.m, r.beta) for r in rows} == {
        (ROBUST, 5, 25.0), (DEEP, 1, math.inf), ("β-divergence", 1, 5.0),
        (housing.LEARNED, 1, math.inf),
    }  # fmt: skip


@pytest.mark.slow
def test_a_wrong_prior_costs_and_a_smaller_order_forgives(tmp_path):
    spec = PriorSpec(None, 30, 1, (0.5, 1.0), prior_means=(0.0, 1.0), members=(10,), betas=(0.1,))
    Study("prior", "", spec, spec, "california").run(tmp_path, silent, How())
    table = read_table(tmp_path / "prior" / "nll.csv")
    assert tuple(table) == prior.COLUMNS
    nll = dict(zip(zip(table["t_p"], table["prior_mean"], strict=True), table["nll"], strict=True))
    assert nll[1.0, 0.0] < nll[1.0, 1.0]
    assert nll[0.5, 1.0] < nll[1.0, 1.0]
    assert not (tmp_path / "prior" / "results.csv").exists()


def test_studies_share_cells():
    def keys(name, how):
        return {key(cell) for cell in EXPERIMENTS[name].spec(how).cells()}

    for how in (How(), How(full=True), How(seeds=2)):
        assert keys("reliability", how) < keys("mnist", how)
        assert keys("nll-split", how) < keys("cifar10", how)
        assert len(keys("mnist", how)) == len(EXPERIMENTS["mnist"].spec(how).cells())
    split = EXPERIMENTS["nll-split"].spec(How()).cells()
    assert [(c.t_grid, c.split) for c in split] == [((1.0,), True), ((0.7,), True)]
    assert not keys("mnist", How()) & keys("mnist", How(full=True))


def test_full_is_the_paper_s_size():
    for name in ("mnist", "emnist", "cifar10", "housing", "prior"):
        spec = EXPERIMENTS[name].spec(How(full=True))
        assert spec.rows is None
        assert spec.seeds >= 3
    assert images.MNIST.full.t_grid == tuple(i / 10 for i in range(11))
    assert Criterion(10, 0.5, 50).regulariser_weight(1) == 1 / 5
