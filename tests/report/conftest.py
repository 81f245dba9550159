"""The numbers of a page made by hand: nothing is trained here."""

from types import SimpleNamespace

import numpy as np
import pytest

from mtbayes.report.model import page
from mtbayes.tables.facts import ModelFacts

N = 200


def of_classes(target="label", labels=("cat", "dog", "owl"), column="weight", given="cat"):
    """Probabilities of N rows that are right as often as they say, and images of 8 x 8 pixels."""
    rng = np.random.default_rng(0)
    prediction = rng.dirichlet(np.ones(len(labels)), N)
    y = np.array([rng.choice(len(labels), p=p) for p in prediction])
    wrong = np.linspace(0, 1, N)
    columns = [column, *(f"c{i}" for i in range(20))]
    return ModelFacts(
        target=target,
        labels=labels,
        model_file="m.mtb",
        data_file="d.csv",
        words=["It predicts.", f"The column {column} matters."],
        y=y,
        prediction=prediction,
        wrong=wrong,
        seen=np.ones(N, bool),
        judged=True,
        t=0.7,
        chosen=True,
        path=[
            {"t": t, "score": -t, "error": 0.1 * t, "contamination": 0.1} for t in (1.0, 0.7, 0.4)
        ],
        contamination=(0.1, 0.05, 0.2),
        suspects=[
            {
                "row": row,
                "probability": p,
                "given": given,
                "suggested": labels[1],
                "why": f"going by the other rows, {given} is 1 % likely",
                "cells": {column: cell},
            }
            for row, p, cell in (
                (30, 0.99, "0.3"),
                (4, 0.9, "0.25"),
                (100, 0.5, ""),
                (2, 0.4, "-1"),
            )
        ],
        pictures=rng.uniform(size=(4, 8, 8)),
        brightness=(0.0, 1.0),
        aleatoric=rng.uniform(size=50),
        epistemic=rng.uniform(size=50),
        importance=[
            SimpleNamespace(column=c, loss=0.5 / (i + 1), error=0.01, accuracy=0.1)
            for i, c in enumerate(columns)
        ],
        effects=[
            SimpleNamespace(column=column, at=at, means=rng.dirichlet(np.ones(len(labels)), 2))
            for at in ([1.0, 2.0], list(labels[:2]), list(np.array([0, 9], "datetime64[D]")))
        ],
        heat=None,
        settings=[("m", "10"), ("mtbayes", "0")],
    )


def of_numbers():
    """Means and sds of N rows, nine tenths of them right."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=N), np.full(N, 2.0)
    y = mean + sd * rng.normal(size=N)
    y[:20] += 1000
    case = of_classes()
    return case._replace(
        target="price",
        labels=[],
        y=y,
        prediction=np.stack([mean, sd], axis=1),
        wrong=np.where(np.arange(N) < 20, 1.0, 0.0),
        importance=[
            SimpleNamespace(column=c.column, loss=c.loss, error=c.error, accuracy=None)
            for c in case.importance
        ],
        effects=[SimpleNamespace(column="weight", at=[1.0, 2.0], means=np.array([[5.0], [7.0]]))],
        pictures=None,
    )


@pytest.fixture(scope="session")
def classes_case():
    return of_classes()


@pytest.fixture(scope="session")
def numbers_case():
    return of_numbers()


@pytest.fixture(scope="session")
def classes_page(classes_case):
    return page(classes_case)


@pytest.fixture(scope="session")
def numbers_page(numbers_case):
    return page(numbers_case)


@pytest.fixture(scope="session")
def make_classes():
    return of_classes
