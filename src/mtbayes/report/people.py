"""The part of a model's page about people who labelled its rows, side by side."""

from __future__ import annotations

from mtbayes.report import html
from mtbayes.tables.facts import ModelFacts
from mtbayes.tables.people import SHOWN

_WORDS = ("annotator", "verdict", "confuses")


def section(facts: ModelFacts) -> str:
    """A table of the annotators; nothing where each row had one target."""
    if not facts.people:
        return ""
    names = SHOWN["classes" if facts.labels else "number"]
    lines = [[str(person[name]) for name in names] for person in facts.people]
    about = (
        "Several people labelled each row, and the target is their consensus: what is most "
        "probable by the features, by fits that have not seen the row, and by all labels."
    )
    how = (
        "quality: probability that the next label is right, with its 95 % interval (low, high). "
        "right: share of the labels given that are right. Chance is a blind guess with the labels "
        "that the person gives; against is worse than that. confuses: what is given for which true "
        "class, and in how many of its rows; first what makes most wrong labels, which of a rare "
        "class a large share does not."
        if facts.labels
        else "quality: share of the variance of a rating that is the truth's, with its 95 % "
        "interval (low, high). bias: how much too high the rating of an average row is. scale: by "
        "how much it grows where the truth grows by 1. spread: standard deviation of its noise."
    )
    return html.section(
        "Who labelled the rows",
        html.paragraph(about, how),
        html.table("Annotators, the best first", names, lines, text=_WORDS),
    )
