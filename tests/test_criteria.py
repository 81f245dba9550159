"""Criterion checks itself."""

import dataclasses
import math

import jax.numpy as jnp
import pytest

from mtbayes import Criterion, InvalidInput


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"t": 1.5}, ["t must lie in [0, 1]", "1.5", "t = 1 is the ordinary log loss"]),
        ({"t": -0.1}, ["t must lie in [0, 1]", "-0.1"]),
        ({"t": math.nan}, ["t must lie in [0, 1]", "nan"]),
        ({"t": "high"}, ["t must be a number", "'high'"]),
        ({"t": [0.5, 0.6]}, ["t must be one number", "[0.5, 0.6]"]),
        ({"t": None}, ["t must be one number", "None"]),
        ({"m": 0}, ["m must be a whole number of at least 1", "0"]),
        ({"m": 2.5}, ["m must be a whole number", "2.5"]),
        ({"m": "ten"}, ["m must be", "'ten'"]),
        ({"m": math.nan}, ["m must be", "nan"]),
        ({"m": True}, ["m must be", "True"]),
        ({"m": math.inf}, ["beta must be math.inf when m is", "prior"]),
        ({"beta": 0}, ["beta must be", "0", "beta = 1 is Bayes"]),
        ({"beta": -1.0}, ["beta must be", "-1.0"]),
        ({"t_p": 0.0}, ["t_p must be", "0.0", "KL"]),
        ({"t_p": math.inf}, ["t_p must be", "inf"]),
    ],
)
def test_bad_settings_are_named(arguments, words):
    with pytest.raises(InvalidInput) as error:
        Criterion(**{"m": 10, "t": 0.5, "beta": 1.0, **arguments})
    for word in words:
        assert word in str(error.value)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Criterion(1, 1.0).t = 0.5


def test_regulariser_weight():
    assert Criterion(10, 0.5, beta=2.0).regulariser_weight(50) == 0.1
    assert Criterion(10, 0.5, beta=math.inf).regulariser_weight(50) == 0


def test_fewer_members_than_m_are_refused():
    for members in (3, 15):
        with pytest.raises(InvalidInput, match=f"multiple of m = 10 members, got {members}. Draw"):
            Criterion(m=10, t=0.5).rows(jnp.zeros((members, 2)), None, 0.5)
