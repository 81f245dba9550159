"""Certificates: they hold on new rows, say something, and nothing unpaid has seen those rows."""

import jax
import numpy as np
import pytest

from mtbayes import InvalidInput, RobustClassifier, RobustRegressor
from mtbayes.fitting.certificate import Parts, _evidence
from mtbayes.theory import sampling
from mtbayes.theory.bounds import moment

ADDED = ("empirical risk", "Monte Carlo error", "for ")


def blobs(n, seed):
    """Three classes in the plane, some of them in the wrong place."""
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    centre = np.array([[0, 0], [3, 0], [0, 3]])[y]
    return centre + random.normal(size=(n, 2)), np.array(["a", "b", "c"])[y]


def estimator(**changes):
    settings = {"m": 2, "modes": 1, "beta": 10.0, "t": 0.5, "hidden": (8,), "epochs": 20,
                "random_state": 0}  # fmt: skip
    return RobustClassifier(**(settings | changes))


# Of `random_state=0`.
KEY = jax.random.key(np.random.RandomState(0).randint(2**31))


def evidence_of(x, y):
    """What the certificate of a predictor rests on."""
    parts = Parts.of(x, y, 0.5, KEY)
    first = estimator().learned(x[parts.learn], y[parts.learn])
    return _evidence(first, x, y, parts, 0.95, "error", 100, KEY), parts


@pytest.fixture(scope="module")
def rows():
    return blobs(900, 0)


@pytest.fixture(scope="module")
def certified(rows):
    return estimator().certify(*rows)


def test_the_certificate_of_the_predictor_holds_on_new_rows_and_says_something(certified):
    x, y = blobs(5000, 1)
    error = np.mean(certified.predictor.predict(x) != y)
    assert error <= certified.value < error + 0.1
    assert certified.statement == (
        "With 95 % confidence the error rate of this classifier is at most "
        f"{np.ceil(1e4 * certified.value) / 100:.4g} % on new rows drawn like these 450."
    )


def test_the_terms_account_for_the_value(certified):
    terms = certified.terms
    assert sum(v for k, v in terms.items() if k.startswith(ADDED)) == pytest.approx(certified.value)
    assert (terms["rows"], terms["rows of the prior"]) == (450, 450)
    assert terms["members"] == 100
    wrong = terms["empirical risk"] * 450
    assert wrong == pytest.approx(round(wrong), abs=1e-6)
    # 100 members' density ratio: its mean is 100 KL, its spread about √(200 KL).
    kl = terms["KL of a member (nats)"]
    assert kl > 0
    assert abs(terms["complexity (nats)"] - 100 * kl) < 5 * np.sqrt(200 * kl) + 1e-3


def test_equal_seeds_give_equal_certificates(rows, certified):
    again = estimator().certify(*rows)
    assert again.value == certified.value
    assert again.terms == certified.terms


def test_nothing_but_the_posterior_sees_the_targets_of_the_bound_rows(rows):
    x, y = rows
    first, parts = evidence_of(x, y)
    keep = np.flatnonzero(np.isin(x[:, 0], _undone(first, x)))
    assert len(keep) == 450
    np.testing.assert_array_equal(keep, parts.keep)
    other = y.copy()
    other[keep] = np.roll(np.array(["a", "b", "c"]), 1)[np.searchsorted(["a", "b", "c"], y[keep])]
    second, _ = evidence_of(x, other)
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.prior.mean, second.prior.mean)
    assert first.predictor.law.epsilon == second.predictor.law.epsilon
    assert not np.array_equal(first.y, second.y)
    assert not np.array_equal(first.predictor.state.mean, second.predictor.state.mean)


def _undone(evidence, x):
    """First columns of the rows whose features are those of the bound."""
    coded = evidence.predictor.units.features.apply(x)
    places = {row.tobytes(): i for i, row in enumerate(coded)}
    return x[[places[row.tobytes()] for row in evidence.x], 0]


@pytest.mark.parametrize("of", ["member", "members", "ensemble"])
def test_other_certificates_name_what_they_bound_and_pay_for_monte_carlo(rows, monkeypatch, of):
    monkeypatch.setattr(sampling, "_GROUPS", 500)
    found = estimator().certify(*rows, of=of)
    whose = {"member": "one member drawn", "members": "2 members drawn", "ensemble": "whole"}[of]
    assert whose in found.statement
    x, y = blobs(5000, 1)
    assert np.mean(found.predictor.predict(x) != y) - 0.02 <= found.value < 0.35
    assert sum(v for k, v in found.terms.items() if k.startswith(ADDED)) == pytest.approx(
        found.value
    )
    if of == "ensemble":
        values = [v for k, v in found.terms.items() if k.startswith("value by")]
        assert (len(values), min(values)) == (found.terms["settings tried"], found.value)
    else:
        members = {"member": 1, "members": 2}[of]
        assert found.terms["Monte Carlo error"] > 0
        assert found.terms["complexity (nats)"] == pytest.approx(
            members * found.terms["KL of a member (nats)"]
        )


def test_labels_that_the_prior_has_not_seen_are_errors(rows):
    x, y = rows
    keep = Parts.of(x, y, 0.5, KEY).keep
    strange = y.copy()
    strange[keep[:90]] = "z"
    bound = estimator().certify(x, strange)
    assert bound.terms["empirical risk"] > 90 / 450
    loss = estimator().certify(x, strange, risk="log_t")
    assert loss.terms["empirical risk"] > 2 * 90 / 450


def test_rows_alone_equal_no_row_of_the_prior_and_none_before():
    x, y = blobs(40, 3)
    learn, keep, alone = Parts.of(np.tile(x, (3, 1)), np.tile(y, 3), 0.5, KEY)
    assert (len(learn), len(keep)) == (60, 60)
    assert set(learn) | set(keep) == set(range(120))
    originals = keep[alone] % 40
    assert len(set(originals)) == len(originals)
    assert set(originals) == set(keep % 40) - set(learn % 40)


def test_where_rows_are_equal_the_larger_of_two_certificates_is_given():
    x, y = blobs(400, 4)
    # Two rows are easy and are there many times, as draws of their own or as copies.
    x, y = np.append(x, np.tile(x[:2], (200, 1)), axis=0), np.append(y, np.tile(y[:2], 200))
    found = estimator().certify(x, y)
    _, parts = evidence_of(x, y)
    assert found.terms["rows that equal others"] > 190
    # The repeats are easy: without them there are more errors.
    assert found.terms["rows"] == len(parts.alone)
    alone = parts.keep[parts.alone]
    wrong = found.predictor.predict(x[alone]) != y[alone]
    assert found.terms["empirical risk"] == pytest.approx(wrong.mean())


def test_a_certificate_on_rows_that_were_all_seen_says_on_what_it_rests():
    x, y = np.tile(np.eye(2), (40, 1)), np.tile(["a", "b"], 40)
    bound = estimator(epochs=2).certify(x, y)
    assert bound.statement.endswith(
        "if they are copies and not draws of their own, this need not hold."
    )


def test_the_regressor_certifies_a_density_with_its_floor(rows):
    random = np.random.default_rng(0)
    x = random.normal(size=(800, 1))
    y = 5 * x[:, 0] + random.normal(size=800)
    model = RobustRegressor(m=2, t=0.5, hidden=(8,), epochs=40, random_state=0)
    bound = model.certify(x, y)
    predictor = bound.predictor
    x_new = random.normal(size=(5000, 1))
    y_new = 5 * x_new[:, 0] + random.normal(size=5000)
    # In units of the targets' scale, as they are learned.
    density = np.exp(predictor.log_prob(x_new, y_new)) * predictor.targets_.scale
    risk = np.mean(2 * (1 - np.sqrt(density)))
    assert risk <= bound.value < 2
    assert f"targets in units of {predictor.targets_.scale:.4g}) of" in bound.statement
    floor = predictor.law_.scale * 0.02
    peak = 1 / (floor * np.sqrt(2 * np.pi))
    low, width = 2 * (1 - np.sqrt(peak)), 2 * np.sqrt(peak)
    scaled = [(v - low) / width for v in (bound.terms["empirical risk"], bound.value)]
    paid = scaled[0] * np.log(scaled[0] / scaled[1])
    paid += (1 - scaled[0]) * np.log((1 - scaled[0]) / (1 - scaled[1]))
    budget = (bound.terms["complexity (nats)"] + np.log(moment(400) / 0.05)) / 400
    assert paid == pytest.approx(budget, rel=1e-6)
    with pytest.raises(InvalidInput, match="risk must be one of 'log_t', got 'error'"):
        model.certify(x, y, risk="error")


def test_refusals_come_before_any_fit_and_say_what_to_do(rows, monkeypatch):
    monkeypatch.setattr(RobustClassifier, "learned", lambda *_, **__: pytest.fail("a fit"))
    with pytest.raises(InvalidInput, match=r"t must be below 1.*no upper limit.*error rate"):
        estimator(t=1.0).certify(*rows, risk="log_t")
    for confidence in (0.0, 1.0, 95):
        with pytest.raises(
            InvalidInput, match=r"confidence must lie between 0 and 1, got .*0\.95 is usual"
        ):
            estimator().certify(*rows, confidence=confidence)
    for fraction in (0.0, 1.0):
        with pytest.raises(InvalidInput, match=r"rows that the prior has seen.*try 0\.5"):
            estimator().certify(*rows, prior_fraction=fraction)
    with pytest.raises(InvalidInput, match="risk must be one of"):
        estimator().certify(*rows, risk="accuracy")
    with pytest.raises(InvalidInput, match="of must be one of 'members', 'member'"):
        estimator().certify(*rows, of="membrs")


@pytest.mark.slow
def test_a_mixture_has_a_prior_for_each_of_its_components(rows):
    bound = estimator(m=5, modes=5).certify(*rows, of="members")
    x, y = blobs(5000, 1)
    assert np.mean(bound.predictor.predict(x) != y) <= bound.value < 0.3
    # Components far from each other would cost hundreds of nats beside one common prior.
    assert 0 < bound.terms["KL of a member (nats)"] < 5
