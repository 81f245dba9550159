"""What is unusual about a row, and which rows are like it."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from mtbayes.data.schema import learn_table
from mtbayes.tables.looks import Looks, like

N = 400


@pytest.fixture(scope="module")
def looks():
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "wide": rng.normal(5, 2, N),
            "kind": rng.choice(["a", "b", "c", "d"], N),
            "rare": ["odd" if i < 8 else "even" for i in range(N)],
            "words": [f"row {i}" for i in range(N)],
            "y": rng.choice(["x", "z"], N),
        }
    )
    schema, coded = learn_table(table, "y")
    return Looks(schema, coded.x), coded, table


def test_distance_is_in_standard_deviations(looks):
    found, coded, table = looks
    group = np.arange(100, N)
    cells = {name: str(table.column(name)[3].as_py()) for name in table.column_names[:-1]}
    columns = {c.name: c for c in found.columns(3, cells, group, group)}
    z = (coded.x[3, 0] - 5) / 2
    assert columns["wide"].given == pytest.approx(z, abs=0.3)
    # A level that 8 of 308 rows have is as rare as they; one of four alike is not.
    both = np.concatenate([np.arange(8), group])
    rare = {c.name: c for c in found.columns(3, cells, both, group)}["rare"]
    assert rare.given == pytest.approx(norm.isf((7 + 0.5) / 308 / 2))
    assert rare.unusual
    assert abs(columns["kind"].given) < UNLIKELY
    assert columns["words"].given is None
    order = [c.name for c in found.columns(3, cells, both, group)]
    assert (order[0], order[-1]) == ("rare", "words")


UNLIKELY = 1.5


def test_a_text_is_far_from_those_of_the_other_class():
    rng = np.random.default_rng(0)
    words = {"good": ["lovely", "great", "happy", "fine"], "bad": ["awful", "rude", "late", "poor"]}
    labels = ["good", "bad"] * 100
    lines = [" ".join([*rng.choice(words[y], 3), "room", "and", "food"]) for y in labels]
    table = pa.table({"said": lines, "y": labels})
    schema, coded = learn_table(table, "y")
    found, y = Looks(schema, coded.x), np.array(labels)
    good, bad = np.flatnonzero(y == "good"), np.flatnonzero(y == "bad")
    (column,) = found.columns(1, {"said": lines[1]}, good, bad)  # a bad one that is called good
    assert column.given > 3
    assert column.unusual
    assert column.suggested < 2
    (alone,) = found.columns(1, {"said": lines[1]}, good, bad[:2])
    assert alone.given is None


def test_no_rows_to_compare_with(looks):
    found, _, _ = looks
    cells = dict.fromkeys(["wide", "kind", "rare", "words"], "")
    assert found.columns(0, cells, np.array([], int), np.array([0]))[0].given is None


def test_nearest_rows_by_brute_force(looks):
    found, coded, _ = looks
    group = np.arange(0, N, 2)
    scaled = coded.x / coded.x.std(axis=0)
    distance = np.linalg.norm(scaled - scaled[4], axis=1)
    wanted = sorted(set(group) - {4}, key=lambda i: distance[i])[:3]
    assert distance[found.nearest(4, group, 3)] == pytest.approx(distance[wanted])
    assert 4 not in found.nearest(4, group, 3)


def test_rows_with_a_target_or_a_number_near_it():
    trusted = np.arange(6) != 1
    np.testing.assert_array_equal(
        like(np.array(list("aababa")), "a", trusted, numbers=False), [0, 3, 5]
    )
    y, sure = np.arange(1000.0), np.ones(1000, bool)
    np.testing.assert_array_equal(like(y, 500.2, sure, numbers=True), np.arange(476, 526))
