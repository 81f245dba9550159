"""Training rows: no two alike, none of weight 0, in an order of their own."""

from __future__ import annotations

import numpy as np

from mtbayes.types import Array, FloatArray, Rows

_COPIES = 200_000  # rows of weight 1, up to which a row of weight 2 is two of them
_MERGED = 2**25  # numbers in the rows, above which equal rows are not looked for
_CONTRADICT = 0.05  # of the pairs of rows with equal x: fewer tell nothing that copies would not
_SIGN = np.uint64(1 << 63)


def distinct(
    x: Array, y: Array, weight: FloatArray, trusted: Array | None = None
) -> tuple[Rows, Array]:
    """Equal rows as one with their weights added, and where each row went (-1: weight 0).

    Where one of them is trusted, all are: they say the same.

    So a row of weight 2 is two rows to the last bit. Rows are sorted by value, which neither the
    order they came in nor the units of a column change.
    """
    kept = np.flatnonzero(weight > 0)
    inverse = np.full(len(y), -1)
    if x.size > _MERGED:
        inverse[kept] = np.arange(len(kept))
        return Rows(x, y, weight, trusted).take(kept), inverse
    order = y if y.dtype.kind in "biuf" else np.unique(y, return_inverse=True)[1]
    flat = np.column_stack([np.asarray(x)[kept].reshape(len(kept), -1), order[kept]])
    _, first, places = np.unique(_sortable(flat), return_index=True, return_inverse=True)
    inverse[kept] = places.ravel()
    total = np.bincount(places.ravel(), weight[kept]).astype(float)
    if trusted is not None:
        trusted = np.bincount(places.ravel(), trusted[kept]) > 0
    return Rows(x[kept][first], y[kept][first], total, trusted), inverse


def in_copies(rows: Rows, inverse: Array) -> tuple[Rows, Array]:
    """Distinct rows whose weights are whole numbers as that many rows each, and the first of them.

    They then lie in several folds. As one row they would lie in one, and a fit that has left them
    out would know the others with the same x and another target alone. But a row that a file holds
    twice stays one: a fit without it that knew its copy would know its target, right or wrong.
    inverse: where each row went that came, [n]; equal ones are judged by the first copy of all
    """
    total = rows.weight
    if np.any(total % 1) or total.sum() > max(_COPIES, 2 * len(total)) or np.all(total == 1):
        return rows, inverse
    if _repeated(rows):
        return rows, inverse
    counts = total.astype(int)
    first = np.append(np.cumsum(counts) - counts, -1)
    copies = rows.take(np.repeat(np.arange(len(counts)), counts))
    return copies._replace(weight=np.ones(len(copies.y))), first[inverse]


def _repeated(rows: Rows) -> bool:
    """Whether equal rows are one that was written down twice, and not several that came out alike.

    Those that came out alike have other targets now and then, or columns of so few values that
    chance makes some pairs equal, even if no column has to do with another.
    """
    x, counts = np.asarray(rows.x).reshape(len(rows.y), -1), rows.weight
    _, group = np.unique(_sortable(x), return_inverse=True)
    pairs, agreeing = (
        np.sum(n * (n - 1)) / 2 for n in (np.bincount(group.ravel(), counts), counts)
    )
    if pairs - agreeing > _CONTRADICT * pairs:
        return False
    by_chance = counts.sum() * (counts.sum() - 1) / 2
    for column in x.T:
        _, value = np.unique(column, return_inverse=True)
        by_chance *= np.sum(np.square(np.bincount(value, counts) / counts.sum()))
        if by_chance < 1:
            return True
    return False


def _sortable(numbers: FloatArray) -> Array:
    """Rows of doubles as bytes [n] that sort as the rows do, column by column.

    Doubles sort like whole numbers of 64 bits if the sign is turned, and all of the negative ones.
    """
    bits = np.ascontiguousarray(numbers + 0.0, float).view(np.uint64)  # -0.0 is 0.0
    bits = np.where(bits & _SIGN, ~bits, bits | _SIGN).astype(">u8")
    return bits.view(np.dtype((np.void, 8 * bits.shape[1]))).ravel()
