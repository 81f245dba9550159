"""Columns that are images, and columns that are not."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits

from mtbayes.data.pixels import images, pixel_columns
from mtbayes.data.schema import learn_table

DIGITS = load_digits()


def table(pixels, names):
    columns = dict(zip(names, pixels.reshape(len(pixels), -1).T, strict=True))
    return pa.table(columns | {"label": (np.arange(len(pixels)) % 3).astype(str)})


@pytest.mark.parametrize("name", ["pixel_{0}_{1}", "p{2}", "{2}"])
def test_digits_are_seen_whatever_the_order_of_columns(name):
    names = [name.format(i, j, 8 * i + j) for i in range(8) for j in range(8)]
    found = table(DIGITS.images, names)
    turned = found.select([*reversed(names), "label"])
    schema, _ = learn_table(turned, "label")
    assert len(schema.columns) == 61  # three pixels are black in every image
    np.testing.assert_array_equal(images(turned, schema), DIGITS.images)
    assert pixel_columns(schema) == names


def test_numbers_that_are_no_neighbours_are_no_image():
    noise = np.random.default_rng(0).uniform(size=(50, 8, 8))
    found = table(noise, [f"x{i}" for i in range(64)])
    schema, _ = learn_table(found, "label")
    assert pixel_columns(schema) is not None
    assert images(found, schema) is None


def test_columns_with_names_of_their_own_are_no_pixels():
    names = [f"x{i}" for i in range(63)] + ["age"]
    found = table(DIGITS.images, names)
    assert images(found, learn_table(found, "label")[0]) is None
    few = table(DIGITS.images[:, :7, :8], [f"x{i}" for i in range(56)])
    assert images(few, learn_table(few, "label")[0]) is None


def test_gaps_are_no_pixels():
    pixels = DIGITS.images.copy()
    pixels[3, 4, 4] = np.nan
    found = table(pixels, [f"x{i}" for i in range(64)])
    assert images(found, learn_table(found, "label")[0]) is None
