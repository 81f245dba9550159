"""People who labelled the rows of a table, as records for tables and pages."""

from __future__ import annotations

from typing import Any

SHOWN = {
    "classes": ("annotator", "labels", "quality", "low", "high", "right", "verdict", "confuses"),
    "number": ("annotator", "labels", "quality", "low", "high", "bias", "scale", "spread"),
}
"""What a person is told of each annotator first, by task."""
CONFUSIONS = "; "
"""Between two confusions, first the one that makes most wrong labels."""


def people(estimator: Any) -> list[dict[str, Any]]:
    """The annotators of a fit, the best first; none where each row had one target."""
    if not hasattr(estimator, "crowd_"):
        return []
    found = sorted(estimator.annotators_, key=lambda person: -person.quality)
    return [_record(person._asdict()) for person in found]


def _record(person: dict[str, Any]) -> dict[str, Any]:
    """Numbers to four digits, confusions as text."""
    plain: dict[str, Any] = {
        k: round(v, 4) if isinstance(v, float) else v for k, v in person.items()
    }
    if "confuses" in plain:
        said = (
            f"{c.given} where {c.true} is true ({100 * c.share:.0f} %)" for c in plain["confuses"]
        )
        plain["confuses"] = CONFUSIONS.join(said)
    return {"annotator": str(plain.pop("name")), **plain}
