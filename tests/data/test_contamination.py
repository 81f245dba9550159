"""Contamination: exact counts, honest masks, the stated laws, and the same again from a seed.

Statistical tests compare a frequency with its law at 5 standard errors, with fixed seeds: drawn
anew, each of the comparisons would fail once in 1.7 million times.
"""

import jax
import numpy as np
import pytest

from mtbayes.data.contamination import (
    Contaminated,
    corrupt_features,
    flip_labels,
    huber,
    replace_targets,
)
from mtbayes.errors import InvalidInput

RNG = np.random.default_rng(7)
Y = RNG.choice([0, 0, 1, 2], size=50)  # class 0 twice as frequent: nothing is symmetric
TARGETS = RNG.gamma(2.0, size=50) + 1
X = RNG.gamma(2.0, size=(50, 3)) * [1.0, 10.0, 100.0]


def clean(rng, size):
    return rng.normal(0, 1, size)


def outlier(rng, size):
    return rng.normal(100, 1, size)


def draw_huber(epsilon, seed):
    return huber(clean, outlier, 50, epsilon, seed=seed)


WAYS = {
    "huber": draw_huber,
    "other": lambda epsilon, seed: flip_labels(Y, epsilon, seed=seed),
    "any": lambda epsilon, seed: flip_labels(Y, epsilon, seed=seed, how="any"),
    "pair": lambda epsilon, seed: flip_labels(Y, epsilon, seed=seed, how="pair"),
    "matrix": lambda epsilon, seed: flip_labels(Y, epsilon, seed=seed, how=np.full((3, 3), 1 / 3)),
    "uniform": lambda epsilon, seed: replace_targets(TARGETS, epsilon, seed=seed),
    "gaussian": lambda epsilon, seed: replace_targets(TARGETS, epsilon, seed=seed, how="gaussian"),
    "scaled": lambda epsilon, seed: replace_targets(TARGETS, epsilon, seed=seed, how="scaled"),
    "sampler": lambda epsilon, seed: replace_targets(TARGETS, epsilon, seed=seed, how=outlier),
    "features": lambda epsilon, seed: corrupt_features(X, epsilon, seed=seed),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def same(a: Contaminated, b: Contaminated) -> bool:
    return np.array_equal(a.data, b.data) and np.array_equal(a.touched, b.touched)


# --- every function keeps the contract -------------------------------------------------------


@every_way
@pytest.mark.parametrize(
    ("epsilon", "count"), [(0.0, 0), (0.05, 3), (0.049, 2), (0.3, 15), (0.99, 50), (1.0, 50)]
)
def test_touches_exactly_the_rounded_share(way, epsilon, count):
    dirty = way(epsilon, 0)
    assert dirty.touched.dtype == bool
    assert dirty.touched.shape == (50,)
    assert dirty.touched.sum() == count
    assert len(dirty.data) == 50


@pytest.mark.parametrize(
    ("epsilon", "n", "count"),
    # In floating point 0.145 * 100 and 0.285 * 100 fall just below the half they stand for.
    [(0.145, 100, 15), (0.285, 100, 29), (0.7 - 0.4, 5, 2), (0.3, 10, 3), (0.35, 10, 4)],
)
def test_halves_round_upwards_whatever_the_float_says(epsilon, n, count):
    assert flip_labels(np.arange(n), epsilon, seed=0).touched.sum() == count


@every_way
def test_same_seed_same_result_and_another_seed_another(way):
    assert same(way(0.3, 5), way(0.3, 5))
    assert same(way(0.3, 5), way(0.3, np.int64(5)))
    assert not np.array_equal(way(0.3, 5).touched, way(0.3, 6).touched)
    assert not np.array_equal(way(1.0, 5).data, way(1.0, 6).data) or way in (
        WAYS["pair"],
        WAYS["scaled"],  # at epsilon = 1 nothing is left to chance in these two
    )


@every_way
def test_a_jax_key_is_a_seed(way):
    assert same(way(0.3, jax.random.key(5)), way(0.3, jax.random.key(5)))
    assert same(way(0.3, jax.random.key(5)), way(0.3, jax.random.PRNGKey(5)))
    assert same(way(0.3, jax.random.key(5)), way(0.3, np.asarray(jax.random.PRNGKey(5))))
    first, second = jax.random.split(jax.random.key(5))
    assert not np.array_equal(way(0.3, first).touched, way(0.3, second).touched)


@every_way
def test_a_generator_is_drawn_from_and_moves_on(way):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first = way(0.3, one)
    assert same(first, way(0.3, other))
    assert not np.array_equal(first.touched, way(0.3, one).touched)


@every_way
def test_rows_touched_at_a_small_share_are_touched_at_a_larger(way):
    few, more = way(0.2, 4).touched, way(0.5, 4).touched
    assert np.all(more[few])


@pytest.mark.parametrize(
    "seed",
    [None, True, -1, 1.5, "0", np.array([1, 2]), jax.random.split(jax.random.key(0)), object()],
    ids=["None", "True", "-1", "1.5", "text", "int64s", "two-keys", "object"],
)
@every_way
def test_what_is_no_seed_is_refused(way, seed):
    with pytest.raises(InvalidInput, match=r"(?s)seed must be .*JAX key, got .*Give seed=0"):
        way(0.3, seed)


def test_a_seed_is_required():
    with pytest.raises(TypeError, match="seed"):
        flip_labels(Y, 0.1)


@every_way
@pytest.mark.parametrize("epsilon", [-0.1, 1.01, np.nan, "much"])
def test_a_share_outside_0_1_is_refused(way, epsilon):
    with pytest.raises(InvalidInput, match=rf"epsilon must .*\[0, 1\], got .*{epsilon}.*0.1 is a"):
        way(epsilon, 0)


def test_input_is_never_modified():
    before = Y.copy(), TARGETS.copy(), X.copy()
    for way in WAYS.values():
        dirty = way(1.0, 0)
        dirty.data[:] = 0  # nor does the result share its memory
    for now, then in zip((Y, TARGETS, X), before, strict=True):
        assert np.array_equal(now, then)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_rows_not_touched_stay_as_they_were(epsilon):
    for name, way in WAYS.items():
        original = X if name == "features" else TARGETS if name in REPLACED else Y
        if name != "huber":
            dirty = way(epsilon, 1)
            assert np.array_equal(dirty.data[~dirty.touched], original[~dirty.touched])


REPLACED = ["uniform", "gaussian", "scaled", "sampler"]


def test_each_row_is_as_likely_to_be_touched():
    # 5 standard errors, 20 rows: drawn anew this fails once in 90,000 times.
    rng = np.random.default_rng(11)
    counts = sum(flip_labels(np.arange(20) % 3, 0.3, seed=rng).touched for _ in range(2000))
    assert np.all(np.abs(counts / 2000 - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 2000))


# --- huber -----------------------------------------------------------------------------------


def test_huber_marks_the_outliers():
    dirty = draw_huber(0.3, 0)
    assert np.array_equal(dirty.data > 50, dirty.touched)


def test_huber_shuffles_and_keeps_whole_rows():
    def ordered(rng, size):
        return np.stack([np.arange(size), np.arange(size) + 0.5], axis=1)

    dirty = huber(ordered, lambda rng, size: -1 - ordered(rng, size), 40, 0.25, seed=0)
    good = dirty.data[~dirty.touched]
    assert dirty.data.shape == (40, 2)
    assert np.array_equal(good[:, 1] - good[:, 0], np.full(30, 0.5))
    assert sorted(good[:, 0]) == list(range(30))
    assert list(good[:, 0]) != list(range(30))
    assert np.array_equal((dirty.data < 0).all(axis=1), dirty.touched)


def test_huber_does_not_ask_for_no_rows():
    def refuse(rng, size):
        raise AssertionError("asked")

    assert len(huber(clean, refuse, 3, 0.0, seed=0).data) == 3
    assert len(huber(refuse, outlier, 3, 1.0, seed=0).data) == 3


@pytest.mark.parametrize("n", [0, -3, 2.0, True])
def test_huber_needs_rows(n):
    with pytest.raises(InvalidInput, match=rf"n must be a whole number .* got {n}\. It is"):
        huber(clean, outlier, n, 0.1, seed=0)


def test_samplers_must_give_the_rows_they_are_asked_for():
    with pytest.raises(InvalidInput, match=r"outlier must give .*, 3, got .*\(2,\).* takes \(rng"):
        huber(clean, lambda rng, size: np.zeros(size - 1), 10, 0.3, seed=0)
    with pytest.raises(InvalidInput, match=r"clean must give .*, 7, got .*\(\)"):
        huber(lambda rng, size: 0.0, outlier, 10, 0.3, seed=0)
    with pytest.raises(InvalidInput, match=r"one shape, got \(\) and \(2,\)\. Reshape"):
        huber(clean, lambda rng, size: np.zeros((size, 2)), 10, 0.3, seed=0)
    with pytest.raises(InvalidInput, match=r"clean must be a sampler, got 'normal'"):
        huber("normal", outlier, 10, 0.3, seed=0)


# --- flip_labels -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["other", "pair"])
def test_labels_differ_exactly_where_touched(how):
    dirty = flip_labels(Y, 0.4, seed=0, how=how)
    assert np.array_equal(dirty.data != Y, dirty.touched)
    assert set(dirty.data) <= {0, 1, 2}
    assert dirty.data.dtype == Y.dtype


def test_pair_goes_to_the_next_class_in_the_order_given():
    y = ["b", "a", "c", "a"]
    assert flip_labels(y, 1.0, seed=0, how="pair").data.tolist() == ["c", "b", "a", "b"]
    moved = flip_labels(y, 1.0, seed=0, how="pair", classes=["a", "c", "longer", "b"])
    assert moved.data.tolist() == ["a", "c", "longer", "c"]


def test_labels_may_be_objects_and_classes_may_be_absent_from_y():
    y = np.array(["x", "y", "x"], dtype=object)
    assert flip_labels(y, 1.0, seed=0).data.tolist() == ["y", "x", "y"]
    assert flip_labels([5, 5], 1.0, seed=0, classes=[5, 9]).data.tolist() == [9, 9]


def frequencies(how, n=40_000):
    y = np.repeat([0, 1, 2], [n // 2, n // 4, n // 4])
    given = flip_labels(y, 1.0, seed=jax.random.key(1), how=how).data
    return [np.bincount(given[y == k], minlength=3) / (y == k).sum() for k in range(3)]


MATRIX = [[0.7, 0.2, 0.1], [0.0, 0.5, 0.5], [0.25, 0.0, 0.75]]


@pytest.mark.parametrize(
    ("how", "law"),
    [
        ("other", [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]),
        ("any", np.full((3, 3), 1 / 3)),
        (MATRIX, MATRIX),
    ],
    ids=["other", "any", "matrix"],
)
def test_labels_follow_their_law(how, law):
    # 9 comparisons at 5 standard errors: drawn anew this fails once in 190,000 times.
    law, n = np.array(law), np.array([[20_000], [10_000], [10_000]])
    assert np.all(np.abs(frequencies(how) - law) <= 5 * np.sqrt(law * (1 - law) / n))


def test_any_keeps_some_labels_and_still_calls_them_touched():
    y = np.zeros(3000, int)
    dirty = flip_labels(y, 0.5, seed=0, how="any", classes=[0, 1, 2])
    kept = (dirty.data == y)[dirty.touched].mean()
    assert dirty.touched.sum() == 1500
    assert abs(kept - 1 / 3) < 5 * np.sqrt(2 / 9 / 1500)


def test_any_and_a_matrix_work_with_one_class():
    assert flip_labels([4, 4], 1.0, seed=0, how="any").data.tolist() == [4, 4]
    assert flip_labels([4, 4], 1.0, seed=0, how=[[1.0]]).data.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [[0, 1]]}, r"y must have shape \[n\].*got \(1, 2\)\..*reshape"),
        ({"y": []}, r"y must have shape \[n\].*got \(0,\)"),
        ({"classes": [0, 1]}, r"y must hold labels from classes.*got 2 \(.*Add it to classes"),
        ({"y": [0.0, np.nan]}, r"y must hold labels from classes.*got nan"),
        ({"classes": [0, 1, 2, 2]}, r"classes must .* differ, got \[0, 1, 2, 2\]\. Leave classes"),
        ({"how": "othr"}, r"how must be one of 'other', .*'any'.*, got 'othr'"),
        ({"how": np.eye(2)}, r"how must be .*\(3, 3\).*got shape \(2, 2\)\. Name all classes"),
        ({"how": None}, r"how must be .*got nan.*p\(given \| true\)"),
        ({"how": [[1, 0, 0], [0, 1.5, -0.5], [0, 0, 1]]}, r"how\[1\] .*not negative, got -0.5"),
        ({"how": np.eye(3) * [1, 1, 0.9]}, r"how\[2\] must sum to 1, got .*0.9\. Divide"),
        ({"y": [1, 1], "how": "other"}, r"classes must hold at least 2 .*'other', got 1\. Name"),
        ({"y": [1, 1], "how": "pair"}, r"classes must hold at least 2 .*'pair', got 1\. Name"),
    ],
)
def test_bad_labels_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        flip_labels(**({"y": Y, "epsilon": 0.1, "seed": 0} | options))


# --- replace_targets -------------------------------------------------------------------------


def test_uniform_targets_fill_the_range_of_y():
    y = np.concatenate([np.full(9999, 3.0), [1.0, 9.0]])
    data = replace_targets(y, 1.0, seed=0).data
    assert data.min() >= 1
    assert data.max() <= 9
    assert abs(data.mean() - 5) < 5 * (8 / np.sqrt(12)) / 100
    assert abs(data.std() - 8 / np.sqrt(12)) < 0.1  # standard error 0.01


def test_gaussian_targets_have_the_moments_of_y():
    y = np.random.default_rng(0).gamma(0.5, size=10_000) + 2
    data = replace_targets(y, 1.0, seed=0, how="gaussian").data
    assert abs(data.mean() - y.mean()) < 5 * y.std() / 100
    assert abs(data.std() / y.std() - 1) < 5 / np.sqrt(20_000)
    assert (data < 2).mean() > 0.1  # no copy of y, which starts at 2


def test_scaled_targets_are_multiples():
    for options, factor in (({}, 10), ({"factor": -3}, -3)):
        dirty = replace_targets(TARGETS, 0.4, seed=0, how="scaled", **options)
        assert np.array_equal(dirty.data, np.where(dirty.touched, factor * TARGETS, TARGETS))


def test_a_sampler_gives_the_targets():
    dirty = replace_targets([1, 2, 3, 4], 0.5, seed=0, how=lambda rng, k: -1.0 - np.arange(k))
    assert dirty.data[dirty.touched].tolist() == [-1.0, -2.0]
    assert np.array_equal(dirty.data < 0, dirty.touched)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [[1.0]]}, r"y must have shape \[n\].*got \(1, 1\)"),
        ({"y": [1.0, np.nan]}, r"y must be finite, got nan at \[1\] .*Drop or fill"),
        ({"y": [np.inf, 1.0]}, r"y must be finite, got inf at \[0\]"),
        ({"y": ["a"]}, r"y must be an array of numbers, got a list that is not: .*Code or drop"),
        ({"how": "gausian"}, r"how must be one of 'gaussian', .*'scaled'.*, got 'gausian'"),
        ({"how": lambda rng, k: np.zeros(k + 1)}, r"how must give .*, 1, got .*\(2,\)"),
        ({"how": lambda rng, k: np.zeros((k, 2))}, r"how's draw must have shape \[n\]"),
        ({"how": "scaled", "factor": np.inf}, r"factor must be finite, got inf .*10 is"),
    ],
)
def test_bad_targets_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        replace_targets(**({"y": [1.0, 2.0], "epsilon": 0.5, "seed": 0} | options))


# --- corrupt_features ------------------------------------------------------------------------


def test_every_feature_of_a_touched_row_moves():
    dirty = corrupt_features(X, 0.4, seed=0)
    assert np.array_equal(dirty.data != X, np.repeat(dirty.touched[:, None], 3, axis=1))


@pytest.mark.parametrize("scale", [10.0, 2.0])
def test_features_move_by_scale_times_their_deviation(scale):
    x = np.random.default_rng(2).gamma(1.0, size=(20_000, 3)) * [1.0, 50.0, 0.0] + 0.1
    move = (corrupt_features(x, 1.0, seed=0, scale=scale).data - x) / scale
    spread = np.array([x[:, 0].std(), x[:, 1].std(), 1.0])  # the third feature is constant
    assert np.all(np.abs(move.mean(axis=0)) < 5 * spread / np.sqrt(20_000))
    assert np.all(np.abs(move.std(axis=0) / spread - 1) < 5 / np.sqrt(40_000))
    correlation = np.corrcoef(move.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(correlation) < 5 / np.sqrt(20_000))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": [1.0, 2.0]}, r"x must have shape \[n, d\].*got \(2,\)"),
        ({"x": np.zeros((3, 0))}, r"x must have shape \[n, d\].*got \(3, 0\)"),
        ({"x": [[0.0, np.nan]]}, r"x must be finite, got nan at \[0, 1\] .*Drop or fill"),
        ({"scale": 0}, r"scale must be .*above 0, got 0\. It counts"),
    ],
)
def test_bad_features_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        corrupt_features(**({"x": X, "epsilon": 0.1, "seed": 0} | options))


def test_confusable_labels_follow_a_references_doubt_and_choice():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 6000)
    sure = np.arange(6000) < 3000
    probs = np.zeros((6000, 3))
    row = np.arange(6000)
    probs[row, y] = np.where(sure, 0.95, 0.5)
    probs[row, (y + 1) % 3] = np.where(sure, 0.04, 0.4)
    probs[row, (y + 2) % 3] = np.where(sure, 0.01, 0.1)
    found = flip_labels(y, 0.1, seed=1, how="confusable", probs=probs)
    assert found.touched.sum() == 600
    np.testing.assert_array_equal(found.data != y, found.touched)
    # In the proportion of the doubts .05 and .5, less what is drawn without replacement.
    assert 0.07 < sure[found.touched].mean() < 0.12
    assert 0.76 < np.mean(found.data[found.touched] == (y[found.touched] + 1) % 3) < 0.84


def test_confusable_labels_need_a_reference():
    with pytest.raises(InvalidInput, match=r"probs must have shape \(4, 2\)"):
        flip_labels([0, 1, 0, 1], 0.5, seed=0, how="confusable")
