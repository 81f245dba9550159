"""What the paper claims of its experiments, each held against the saved numbers.

A claim has cases: a data set, a share of outliers. It holds if all cases do, holds partly if some
do, and does not hold here if none does. A case of accuracy holds by more than MARGIN.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mtbayes.experiments.housing import EPSILONS
from mtbayes.experiments.images import SPLIT
from mtbayes.experiments.methods import DEEP, GIBBS, MODES, ROBUST
from mtbayes.experiments.multimodal import CHOICES, TABLE_2, method
from mtbayes.experiments.results import read_rows
from mtbayes.report.curves import Curve, curve
from mtbayes.report.prior import betas
from mtbayes.report.prior import nll as prior_nll

MARGIN = {"mnist": 0.002, "emnist": 0.005, "cifar10": 0.01}
"""Of accuracy: half a standard error, or somewhat more, of a difference on that many test rows."""

IMAGES = tuple(MARGIN)


class Measurement(NamedTuple):
    """One measurement beside a claim: whether it agrees, and the numbers."""

    holds: bool
    numbers: str


class Claim(NamedTuple):
    """A claim of the paper; `cases` reads them from the files of the experiments it needs."""

    text: str
    needs: tuple[str, ...]
    cases: Callable[[Path, str], list[Measurement]]


class Judged(NamedTuple):
    """A claim with its verdict."""

    text: str
    verdict: str
    numbers: list[str]


def judge(out: Path) -> list[Judged]:
    """Every claim, from the experiments that are there."""
    return [_judged(claim, out) for claim in CLAIMS]


def _judged(claim: Claim, out: Path) -> Judged:
    there = [name for name in claim.needs if (out / name / "run.json").exists()]
    cases = [case for name in there for case in claim.cases(out, name)]
    good = sum(case.holds for case in cases)
    verdict = (
        "not measured" if not cases
        else "holds" if good == len(cases)
        else "holds partly" if good
        else "does not hold here"
    )  # fmt: skip
    return Judged(claim.text, verdict, [case.numbers for case in cases])


def _curves(out: Path, name: str, metric: str, epsilon: float | None = None) -> list[Curve]:
    rows = read_rows(out / name / "results.csv")
    return [curve(rows, method, metric, epsilon) for method in (ROBUST, GIBBS, DEEP)]


def _order_of_table_2(out: Path, name: str) -> list[Measurement]:
    rows = read_rows(out / name / "results.csv")
    found = []
    for components in (1, 2):
        clean, *dirty = (
            curve(rows, method(components), CHOICES[0].tv, epsilon).at(t) for epsilon, t in TABLE_2
        )
        shown = ", ".join(f"{tv:.3f}" for tv in dirty)
        text = f"K = {components}: TV {clean:.3f} at ε = 0; {shown} at ε = 0.1, t = 1, 0.9, 0.8"
        found.append(Measurement(clean < dirty[2] < dirty[1] < dirty[0], text))
    return found


def _beats(out: Path, name: str) -> list[Measurement]:
    robust, gibbs, deep = _curves(out, name, "accuracy")
    best = robust.mean.max()
    return [
        Measurement(
            best > other.mean.max() + MARGIN[name],
            f"{name}: {best:.1%} at t = {robust.argmax():g}, {rival} {other.mean.max():.1%}"
            + (f" at t = {other.argmax():g}" if rival == "Gibbs" else ""),
        )
        for rival, other in (("Gibbs", gibbs), ("deep ensemble", deep))
    ]


def _modes_beat(out: Path, name: str) -> list[Measurement]:
    rows = read_rows(out / name / "results.csv")
    modes, deep = (curve(rows, method, "accuracy") for method in (MODES, DEEP))
    if not len(modes.t):
        return []
    best = modes.mean.max()
    text = (
        f"{name}: {best:.1%} at t = {modes.argmax():g}, deep ensemble {deep.mean.max():.1%}, the "
        f"paper's ensemble {curve(rows, ROBUST, 'accuracy').mean.max():.1%}"
    )
    return [Measurement(best > deep.mean.max() + MARGIN[name], text)]


def _chosen_t(out: Path, name: str) -> list[Measurement]:
    robust = _curves(out, name, "accuracy")[0]
    best, plain = robust.mean.max(), robust.at(1.0)
    text = f"{name}: {plain:.1%} at t = 1, {best:.1%} at t = {robust.argmax():g}"
    return [Measurement(best > plain + MARGIN[name], text)]


def _calibration(out: Path, name: str) -> list[Measurement]:
    robust, _, deep = _curves(out, name, "ece")
    lowest, plain, other = robust.mean.min(), robust.at(1.0), deep.at(1.0)
    text = (
        f"{name}: ECE {plain:.1%} at t = 1, {lowest:.1%} at t = {robust.argmin():g}, deep "
        f"ensemble {other:.1%}"
    )
    return [Measurement(lowest < 0.5 * min(plain, other), text)]


def _confidence(out: Path, name: str) -> list[Measurement]:
    robust, gibbs, _ = _curves(out, name, "overconfidence")
    found = []
    for label, each in (("robust ensemble", robust), ("Gibbs", gibbs)):
        text = (
            f"{name}, {label}: confidence less accuracy {each.at(1.0):+.1%} at t = 1, "
            f"{each.at(0.0):+.1%} at t = 0"
        )
        found.append(Measurement(each.at(1.0) < 0 < each.at(0.0), text))
    return found


def _clean_is_best_at_one(out: Path, name: str) -> list[Measurement]:
    robust, gibbs, _ = _curves(out, name, "nll", 0.0)
    return [
        Measurement(
            each.argmin() == 1.0,
            f"{label}: NLL {each.at(1.0):.3f} at t = 1, {each.mean.min():.3f} at "
            f"t = {each.argmin():g}, seeds {each.spread():.3f} apart",
        )
        for label, each in (("robust ensemble", robust), ("Gibbs", gibbs))
    ]


def _beats_in_nll(out: Path, name: str) -> list[Measurement]:
    found = []
    for epsilon in EPSILONS:
        robust, gibbs, deep = (c.mean.min() for c in _curves(out, name, "nll", epsilon))
        text = f"ε = {epsilon:g}: NLL {robust:.3f}, Gibbs {gibbs:.3f}, deep ensemble {deep:.3f}"
        found.append(Measurement(robust < min(gibbs, deep), text))
    return found


def _keeps(out: Path, name: str) -> list[Measurement]:
    clean = _curves(out, name, "nll", 0.0)[0].mean.min()
    found = []
    for epsilon in EPSILONS[1:]:
        robust = _curves(out, name, "nll", epsilon)[0]
        lost, plain = robust.mean.min() - clean, robust.at(1.0) - clean
        text = f"ε = {epsilon:g}: loses {lost:.3f} at its best t, {plain:.3f} at t = 1"
        found.append(Measurement(lost < 0.25 * plain, text))
    return found


def _best_t_rises(out: Path, name: str) -> list[Measurement]:
    robust, gibbs = ([_curves(out, name, "nll", e)[i].argmin() for e in EPSILONS] for i in (0, 1))
    shares = ", ".join(f"{e:g}" for e in EPSILONS)
    return [
        Measurement(
            best[-1] > best[0],
            f"{label}: best t = {', '.join(f'{t:g}' for t in best)} at ε = {shares}",
        )
        for label, best in (("robust ensemble", robust), ("Gibbs", gibbs))
    ]


def _softens(out: Path, name: str) -> list[Measurement]:
    found = []
    for beta in betas(out):
        lost = {}
        for m in (1, 10):
            for t_p in (1.0, 0.5):
                each = prior_nll(out, m, beta, "prior_mean", t_p=t_p)
                lost[m, t_p] = each.at(1.0) - each.at(0.0)
        gain = {m: lost[m, 1.0] - lost[m, 0.5] for m in (1, 10)}
        for m, needed in ((1, 0.0), (10, max(gain[1], 0.0))):
            text = (
                f"beta = {beta:g}, m = {m}: NLL lost from Δμ = 0 to 1 {lost[m, 1.0]:z.3f} with "
                f"KL, {lost[m, 0.5]:z.3f} with t_p = 0.5"
            )
            found.append(Measurement(gain[m] > needed, text))
    return found


def _smaller_order(out: Path, name: str) -> list[Measurement]:
    found = []
    for beta in betas(out):
        for m in (1, 10):
            each = prior_nll(out, m, beta, "t_p", prior_mean=1.0)
            text = (
                f"beta = {beta:g}, m = {m}: NLL {each.mean[-1]:.3f} at t_p = {each.t[-1]:g}, "
                f"{each.mean[0]:.3f} at t_p = {each.t[0]:g}"
            )
            found.append(Measurement(each.mean[0] < each.mean[-1], text))
    return found


def _separate(out: Path, name: str) -> list[Measurement]:
    area = curve(read_rows(out / name / "results.csv"), ROBUST, "auroc")
    plain, robust = (area.at(t) for t in SPLIT)
    text = f"AUROC {plain:.3f} at t = {SPLIT[0]:g}, {robust:.3f} at t = {SPLIT[1]:g}"
    return [
        Measurement(robust > plain + 0.01, f"t = 0.7 separates better: {text}"),
        Measurement(plain < 0.6, f"t = 1 hardly separates: AUROC {plain:.3f}, where 0.5 is blind"),
    ]


CLAIMS = [
    Claim(
        "In multimodal regression TV falls with t at ε = 0.1, towards that at ε = 0 (Table II)",
        ("multimodal",),
        _order_of_table_2,
    ),
    Claim(
        "Robust ensembles beat the Gibbs predictor and deep ensembles in accuracy", IMAGES, _beats
    ),
    Claim(
        "With modes (ours, not the paper's): ten networks, each by its own J_t^1, beat deep "
        "ensembles in accuracy",
        IMAGES,
        _modes_beat,
    ),
    Claim("A well-chosen t < 1 raises accuracy over t = 1", IMAGES, _chosen_t),
    Claim("ECE falls drastically for t < 1 (to less than half)", IMAGES, _calibration),
    Claim("t = 1 is underconfident, small t overconfident", ("reliability",), _confidence),
    Claim(
        "Clean and corrupted rows separate in NLL at t = 0.7 and not at t = 1",
        ("nll-split",),
        _separate,
    ),
    Claim("Without outliers t = 1 is best in housing", ("housing",), _clean_is_best_at_one),
    Claim(
        "In housing the robust ensemble has a lower NLL than Gibbs and the deep ensemble",
        ("housing",),
        _beats_in_nll,
    ),
    Claim(
        "Robust losses keep the uncontaminated NLL (lose less than a quarter of what t = 1 loses)",
        ("housing",),
        _keeps,
    ),
    Claim("The best t increases with the share of outliers", ("housing",), _best_t_rises),
    Claim("t_p < 1 softens a wrong prior, more so at m = 10", ("prior",), _softens),
    Claim("Robustness to a wrong prior increases as t_p falls", ("prior",), _smaller_order),
]
"""In the order of the paper."""
