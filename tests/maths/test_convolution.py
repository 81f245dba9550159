"""Convolutions of many members, in blocks of rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mtbayes.maths.convolution import as_maps, as_rows, blocks, convolved

MEMBERS, ROWS, CHANNELS, UNITS, KERNEL = 3, 8, 2, 4, 2


def plain(weight, h, size):
    """The library's convolution and pooling of rows [n, height, width, channels], one member."""
    kernel = weight.T.reshape(KERNEL, KERNEL, h.shape[-1], -1)
    dims = ("NHWC", "HWIO", "NHWC")
    z = jax.lax.conv_general_dilated(h, kernel, (1, 1), "VALID", dimension_numbers=dims)
    window = (1, size, size, 1)
    return jax.lax.reduce_window(z, -jnp.inf, jax.lax.max, window, window, "VALID")


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("size", "count"), [(1, 2), (2, 1), (2, 4), (3, 2)])
def test_blocks_of_rows_are_the_library_s_convolution_with_its_gradients(shared, size, count):
    rng = np.random.default_rng(size)
    with jax.enable_x64(True):
        weight = jnp.asarray(rng.normal(size=(MEMBERS, UNITS, KERNEL**2 * CHANNELS)))
        lead = () if shared else (MEMBERS,)
        h = jnp.asarray(rng.normal(size=(*lead, ROWS, 8, 9, CHANNELS)))

        def ours(weight, h):
            return as_rows(convolved(weight, as_maps(h, count), KERNEL, size))

        def theirs(weight, h):
            rows = jnp.broadcast_to(h, (MEMBERS, *h.shape[-4:]))
            return jnp.stack([plain(weight[s], rows[s], size) for s in range(MEMBERS)])

        def both(how):
            slope = jax.grad(lambda w, h: jnp.sum(jnp.sin(how(w, h))), (0, 1))
            return jax.jit(lambda w, h: (how(w, h), *slope(w, h)))(weight, h)

        for one, two in zip(both(ours), both(theirs), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)
        in_numpy = as_rows(convolved(*map(np.asarray, (weight, as_maps(h, 1))), KERNEL, size))
        np.testing.assert_allclose(in_numpy, theirs(weight, h), rtol=1e-10, atol=1e-12)


def test_maps_and_rows_are_each_other_s_inverse():
    h = np.arange(2 * 6 * 3 * 4 * 5).reshape(2, 6, 3, 4, 5)
    for count in (1, 2, 3):
        maps = as_maps(h, count)
        assert maps.shape == (count, 2, 5, 3, 4, 6 // count)
        np.testing.assert_array_equal(as_rows(maps), h)


def test_of_equal_results_one_alone_passes_the_gradient_on():
    """A black corner of an image: all results of a window are 0."""
    maps = jnp.zeros((1, 1, 5, 5, 1))
    slope = jax.grad(lambda h: convolved(jnp.ones((1, 1, 4)), h, 2, 2).sum())(maps)
    assert float(slope.sum()) == 4 * 4  # four windows, a result of four inputs each


def test_blocks_divide_the_rows_and_are_not_too_small():
    assert blocks(128, 10) == 1  # all of it is small
    assert blocks(128, 10**9) == 4  # 32 rows at least
    assert blocks(96, 10**9) == 2  # 48 are not cut below 32
    assert blocks(33, 10**9) == 1  # nothing divides them
    assert blocks(1, 10**9) == 1
