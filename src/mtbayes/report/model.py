"""The page of a model: what was learned, and how far it can be believed, from numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbayes.laws import Contamination
from mtbayes.metrics import coverage, expected_calibration_error, reliability
from mtbayes.report import figures, html, people
from mtbayes.report import model_figures as draw
from mtbayes.tables.facts import ModelFacts
from mtbayes.types import FloatArray

_BINS = 10
_BARS = 15  # columns in the figure of importances
_CURVES = 4  # classes in a figure of effects
_LEVELS = np.linspace(0.02, 0.98, 49)
_NUMBERS = "The same in numbers; alike: every row counts alike"
_TOO_FEW = (
    "The rows were too few to judge each by a fit that has not seen it: a wrong row may well look "
    "right here."
)
_TOLD = np.array([0.5, 0.8, 0.9, 0.95])  # coverages in the table


def page(facts: ModelFacts) -> str:
    """One HTML file that needs nothing else."""
    title = f"What was learned about {facts.target}"
    return html.document(
        title,
        html.escape(title),
        html.paragraph(f"Model {facts.model_file}, data {facts.data_file}.", quiet=True),
        html.bullets(facts.words),
        _calibration(facts),
        _wrong_rows(facts),
        people.section(facts),
        _suspects(facts),
        _choice(facts),
        _doubt(facts),
        _columns(facts),
        _settings(facts),
    )


def _judges(facts: ModelFacts) -> str:
    """Which rows judge the model, and why that is fair."""
    seen, n = int(facts.seen.sum()), len(facts.seen)
    folds = (
        "were fitted. Each of them is judged by a fit that has not seen it: the rows were split "
        "into folds, and each fold was judged by a fit to the others"
    )
    if seen == n:
        which = f"All {n} rows of the data {folds}."
    elif seen == 0:
        which = f"None of the {n} rows of the data was fitted, so the final model judges them."
    else:
        new = f"The final model judges the other {n - seen}, which are new."
        which = f"Of {n} rows of the data {seen} {folds}. {new}"
    return which


def _calibration(facts: ModelFacts) -> str:
    name = "Are its probabilities right?" if facts.labels else "Are its intervals right?"
    if not facts.judged:
        return html.section(
            name,
            html.paragraph(
                "This cannot be told from these rows: they were too few to keep some out of the "
                "fit, and a fit is no judge of rows that it has seen. Give data with new rows."
            ),
        )
    honest = html.paragraph(
        _judges(facts),
        "Wrong rows are among them. So a row counts as much as it is probably right, which "
        "forgives the model a good row that it takes for wrong; beside it every row counts alike, "
        "which blames the model for the wrong ones. The truth lies between.",
    )
    shown = _reliability(facts) if facts.labels else _coverage(facts)
    return html.section(name, honest, *shown)


def _good(facts: ModelFacts) -> FloatArray:
    good = 1 - facts.wrong
    return good if good.sum() > 0 else np.ones(len(good))


def _reliability(facts: ModelFacts) -> list[str]:
    good, every = (reliability(facts.prediction, facts.y, _BINS, w) for w in (_good(facts), None))
    errors = [
        100 * expected_calibration_error(facts.prediction, facts.y, _BINS, w)
        for w in (_good(facts), None)
    ]
    filled = np.flatnonzero(every.counts)
    lines = [
        (
            f"{100 * k / _BINS:.0f}–{100 * (k + 1) / _BINS:.0f}",
            f"{every.counts[k]}",
            f"{100 * good.confidence[k]:.1f}" if good.counts[k] > 0 else "-",
            f"{100 * good.accuracy[k]:.1f}" if good.counts[k] > 0 else "-",
            f"{100 * every.accuracy[k]:.1f}",
        )
        for k in filled
    ]
    alt = (
        "Reliability diagram. "
        + "; ".join(f"at {line[2]} % sure, {line[3]} % right" for line in lines)
        + "."
    )
    caption = (
        "Where the model says 80 %, it should be right in 80 % of rows: bars should end at the "
        f"dashed line. Mean gap {errors[0]:.1f} points, {errors[1]:.1f} with every row alike. "
        "Pale: fewer than 10 rows."
    )
    heads = ("says %", "rows", "mean %", "right %", "alike %")
    return [
        html.figures(
            html.figure(draw.reliability(good, every), alt, caption),
            html.table(_NUMBERS, heads, lines),
        )
    ]


def _coverage(facts: ModelFacts) -> list[str]:
    mean, sd = facts.prediction.T
    good, every = (coverage(mean, sd, facts.y, _LEVELS, weight) for weight in (_good(facts), None))
    told = [coverage(mean, sd, facts.y, _TOLD, weight) for weight in (_good(facts), None)]
    lines = [
        (f"{100 * level:.0f}", f"{100 * a:.1f}", f"{100 * b:.1f}")
        for level, a, b in zip(_TOLD, *told, strict=True)
    ]
    alt = (
        "Coverage plot. "
        + "; ".join(f"intervals for {line[0]} % hold {line[1]} %" for line in lines)
        + "."
    )
    caption = (
        "Mean ± so many sd that it should hold the share below: the blue line should be the "
        "dashed one. Above it intervals are too wide, below too narrow."
    )
    far = (
        "Given against predicted, by fits that have not seen the row. Crosses are probably wrong; "
        "those far off are drawn at the rim."
    )
    count = int((facts.wrong > 0.5).sum())
    cloud = f"{len(facts.y)} given values against predicted ones, {count} of them probably wrong."
    heads = ("should hold %", "holds %", "alike %")
    return [
        html.figures(
            html.figure(draw.coverage(_LEVELS, good, every), alt, caption),
            html.figure(draw.cloud(facts.y, mean, facts.wrong), cloud, far),
        ),
        html.table(_NUMBERS, heads, lines),
    ]


def _wrong_rows(facts: ModelFacts) -> str:
    share = f"{100 * facts.contamination[0]:.1f} %"
    likely = int((facts.wrong > 0.5).sum())
    text = html.paragraph(
        f"Of the rows that were fitted about {share} have a wrong {facts.target} "
        f"({Contamination(*facts.contamination).words}). The estimate takes a row for wrong where "
        "noise that knows nothing of the other columns explains it better than the model; rows "
        "that are merely unusual, or that the model is too simple for, count among them.",
        f"Of the {len(facts.wrong)} rows here {likely} are more likely wrong than right.",
        "" if facts.judged else _TOO_FEW,
    )
    band = facts.contamination[1:] if facts.seen.all() else None
    alt = f"Probability of being wrong by rank: {likely} of {len(facts.wrong)} rows are above 50 %."
    caption = "A steep fall means that right and wrong rows are told apart clearly."
    if band is not None:
        caption += " The band is the interval of how many are wrong."
    return html.section(
        "How many rows are wrong?",
        text,
        html.figures(html.figure(draw.suspicion(facts.wrong, band), alt, caption)),
    )


def _suspects(facts: ModelFacts) -> str:
    own = list(facts.suspects[0]["cells"]) if facts.suspects else []
    heads = ["row", "wrong %", "given", "suggested", "why", *own]
    if facts.pictures is not None:
        heads.insert(1, "image")
    lines = []
    for i, one in enumerate(facts.suspects):
        line: list[Any] = [
            f"{one['row']}",
            f"{100 * one['probability']:.1f}",
            _plain(one["given"]),
            _plain(one["suggested"]),
            one["why"],
            *one["cells"].values(),
        ]
        if facts.pictures is not None:
            png = figures.png(facts.pictures[i], *facts.brightness)
            alt = f"Row {one['row']}, given as {one['given']}, looks like {one['suggested']}"
            line.insert(1, html.Picture(png, alt))
        lines.append(line)
    words = ["why", *own] + (["given", "suggested"] if facts.labels else [])
    return html.section(
        "Rows to look at",
        html.paragraph(
            "Rows whose value is most likely wrong, judged by fits that have not seen them. Row 1 "
            "is the first below the header. Press a heading to sort. mtbayes audit ranks all rows."
            if facts.judged
            else _TOO_FEW
        ),
        html.table("The most suspicious rows", heads, lines, text=words),
    )


def _choice(facts: ModelFacts) -> str:
    name = "How much each row is believed: t"
    about = (
        f"t is {facts.t:g}. At t = 1 every row is believed alike; the smaller t is, the less a row "
        "counts that contradicts the others."
    )
    if len(facts.path) < 2 or not facts.chosen:
        why = (
            "It was given, and not chosen." if not facts.chosen else "Rows were too few to choose."
        )
        return html.section(name, html.paragraph(about, why))
    how = (
        "It was chosen by rows that a fit has not seen. The score of a t is their mean log "
        "probability, each row counting as much as it is good in the eyes of all t together. "
        "Where rows are clearly wrong the best score is taken; where they may well be clean, the "
        "largest t that is not clearly worse."
    )
    lines = [
        (f"{line['t']:g}", f"{line['score']:.4f}", f"{line['error']:.4f}",
         f"{100 * line['contamination']:.1f}")
        for line in facts.path
    ]  # fmt: skip
    best = max(facts.path, key=lambda line: line["score"])["t"]
    alt = f"Score by t from {lines[-1][0]} to {lines[0][0]}: best at {best:g}, taken {facts.t:g}."
    caption = "Bars: two standard errors of the gap to the best, since all t judge the same rows."
    heads = ("t", "score", "error of the gap", "wrong rows % by this t")
    return html.section(
        name,
        html.paragraph(about, how),
        html.figures(
            html.figure(draw.path(facts.path, facts.t), alt, caption),
            html.table("The score of each t", heads, lines),
        ),
    )


def _doubt(facts: ModelFacts) -> str:
    if facts.labels:
        unit, noise, dispute = "doubt in bits", facts.aleatoric, facts.epistemic
        what = "Doubt is counted in bits: none is sure, 1 is a coin toss between two classes."
    else:
        # In the target's units: the height is the sd, split as the variance is.
        whole = facts.aleatoric + facts.epistemic
        sd = np.sqrt(whole)
        share = np.divide(facts.aleatoric, whole, out=np.ones_like(whole), where=whole > 0)
        unit, noise, dispute = f"sd of {facts.target}"[:40], sd * share, sd * (1 - share)
        what = (
            f"Doubt is the standard deviation of a prediction, in units of {facts.target}, split "
            "as its square is."
        )
    total = noise + dispute
    middle, tenth = np.quantile(total, [0.5, 0.9])
    part = 100 * float(
        facts.epistemic.sum() / max(float((facts.aleatoric + facts.epistemic).sum()), 1e-300)
    )
    text = html.paragraph(
        f"{what} Half of the rows have less than {middle:.3g}, one in ten more than {tenth:.3g}.",
        f"{part:.0f} % of all doubt is dispute among the members of the ensemble, which more rows "
        "would settle; the rest is noise, which they would not.",
        "This is by the final model"
        + (
            ", which has seen rows like these: its members quarrel a little more about new ones."
            if facts.seen.any()
            else ", which has not seen these rows."
        ),
    )
    alt = (
        f"Doubt of rows in rising order: half below {middle:.3g}, one in ten above {tenth:.3g}; "
        f"{part:.0f} % of it is dispute."
    )
    shown = html.figure(draw.doubt(noise, dispute, unit), alt)
    return html.section("How sure is it?", text, html.figures(shown))


def _columns(facts: ModelFacts) -> str:
    cost = (
        "Fall of the mean log probability"
        if facts.labels
        else f"Rise of the mean error in {facts.target}"
    )
    text = html.paragraph(
        "How much a column is needed is what its shuffling costs. Columns that say the same stand "
        "in for each other, and then none looks needed. A row counts as much as it is probably "
        "right. This tells what the model does, not what causes what."
    )
    lines = [
        (
            one.column, f"{one.loss:.4g}", f"{one.error:.2g}",
            *([] if one.accuracy is None else [f"{100 * one.accuracy:.1f}"]),
        )
        for one in facts.importance
    ]  # fmt: skip
    heads = (
        "column",
        cost.lower(),
        "± over shuffles",
        *(["right, points less"] if facts.labels else []),
    )
    each = html.table("What each costs", heads, lines, text=["column"])
    top = facts.importance[:_BARS]
    named = ", ".join(f"{one.column} {one.loss:.3g}" for one in top[:5])
    if facts.heat is not None:
        drawn = [
            html.figure(
                draw.pixels(facts.heat, "cost of shuffling"),
                f"Cost of shuffling each part of the image; the most: {named}.",
                "Where in the image the model looks: bright parts are needed.",
            )
        ]
    else:
        names, losses, errors = zip(*((o.column, o.loss, o.error) for o in top), strict=True)
        bars = draw.importance(names, losses, errors, _wrapped(cost))
        drawn = [html.figure(bars, f"{cost} when a column is shuffled: {named}.")]
    if len(lines) <= _BARS:
        parts = [text, html.figures(*drawn, each)]
    else:
        folded = f"<details><summary>All {len(lines)}</summary>{each}</details>"
        parts = [text, html.figures(*drawn), folded]
    if facts.effects:
        parts += [
            html.paragraph(
                "Which way they pull: the mean "
                + ("probability of a class" if facts.labels else f"predicted {facts.target}")
                + " if all rows had the same value in one column, and else stayed as they are."
            ),
            html.figures(*(_effect(facts, i) for i in range(len(facts.effects)))),
        ]
    return html.section("What the columns do", *parts)


def _wrapped(text: str) -> str:
    return text if len(text) < 48 else text[:46] + "…"


def _effect(facts: ModelFacts, i: int) -> str:
    one = facts.effects[i]
    labels, means = [facts.target], one.means
    if facts.labels:
        # Of two classes one tells all; of many the most moved are shown.
        order = [1] if len(facts.labels) == 2 else np.argsort(-np.ptp(means, axis=0))[:_CURVES]
        labels, means = [facts.labels[j] for j in order], means[:, order]
    # One scale for all, so that a flat line is a small effect.
    whole = np.concatenate([each.means.ravel() for each in facts.effects])
    span = (float(whole.min()), float(whole.max()))
    first = means[:, 0]
    low, high = int(first.argmin()), int(first.argmax())
    what = f"probability of {labels[0]}" if facts.labels else facts.target
    said = (
        f"{one.column}: {what} from {first[low]:.3g} at {_value(one.at[low])} "
        f"to {first[high]:.3g} at {_value(one.at[high])}"
    )
    shown = draw.effect(one.column, one.at, means, labels, span, name=f"{i}")
    return html.figure(shown, f"Mean prediction by {said}.", f"{said}.")


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _settings(facts: ModelFacts) -> str:
    return html.section(
        "Settings and versions",
        html.paragraph("Versions are of what wrote this page."),
        html.table("All of them", ("name", "value"), facts.settings, text=["name", "value"]),
    )
