"""Keys and random numbers outside of compiled programs."""

import jax
import numpy as np
import pytest

from mtbayes.errors import InvalidInput
from mtbayes.maths import draws


@pytest.mark.parametrize("seed", [0, 1, 2**31 + 5, 2**32 - 1])
def test_a_key_is_jaxs_own(seed):
    assert bool(draws.key(seed) == jax.random.key(np.uint32(seed)))


def test_whole_numbers_and_keys_of_any_age_are_keys():
    """Old ones are bare arrays."""
    for seed in (5, np.int64(5), np.uint32(5), jax.random.key(5), jax.random.PRNGKey(5)):
        assert bool(draws.key(seed) == jax.random.key(5))


@pytest.mark.parametrize(
    ("seed", "got"),
    [
        ("a", "'a'"),
        (None, "None"),
        (1.5, "1.5"),
        (True, "True"),
        (jax.random.split(jax.random.key(0), 3), r"key<fry> of shape \(3,\)"),
        (np.zeros(2), r"float64 of shape \(2,\)"),
        (jax.random.PRNGKey(0)[0], r"uint32 of shape \(\)"),
    ],
)
def test_what_is_no_key_is_told(seed, got):
    words = f"key must be a whole number or one JAX key, got {got}. Try 0"
    with pytest.raises(InvalidInput, match=words):
        draws.key(seed)


def test_children_differ_from_each_other_and_from_their_parents():
    parent = draws.key(3)
    found = [parent, *(draws.child(parent, i) for i in range(50)), draws.child(parent, 0, 1)]
    assert len({tuple(np.asarray(jax.random.key_data(k))) for k in found}) == len(found)
    assert bool(draws.child(parent, 4) == draws.child(draws.key(3), 4))


def test_a_child_is_of_its_parents_kind():
    parent = jax.random.key(0, impl="rbg")
    assert jax.random.key_impl(draws.child(parent, 1)) == jax.random.key_impl(parent)


def test_normals_are_standard_and_follow_from_the_key():
    """40,000 of them: mean and standard deviation to five of their own deviations."""
    numbers = draws.normals(draws.key(0), (200, 200))
    assert abs(numbers.mean()) < 5 / 200
    assert abs(numbers.std() - 1) < 5 / 200 / np.sqrt(2)
    assert np.array_equal(numbers, draws.normals(draws.key(0), (200, 200)))
    assert not np.any(numbers == draws.normals(draws.key(1), (200, 200)))
