"""Trees as arrays: grown by others, stored as data, walked here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mtbayes._values import must, storable
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

_AT_ONCE = 2**20  # leaves that are remembered together, trees × rows
_TOGETHER = 2**15  # and walked to: fewer cost Python's time, more the processor's cache


class Tree(NamedTuple):
    """One tree; a leaf says numbers, of which those that are not 0 are kept, node after node.

    feature, threshold, left, right: [N], of scikit-learn's kind; left is below 0 in a leaf
    size: [N], how many numbers a node says; column, value: [M], the place of each, and the number
    width: how many places there are
    """

    feature: Array
    threshold: FloatArray
    left: Array
    right: Array
    size: Array
    column: Array
    value: FloatArray
    width: int

    @classmethod
    def of(
        cls, feature: Array, threshold: Array, left: Array, right: Array, value: FloatArray
    ) -> Tree:
        """From what all nodes would say, [N, width]: most classes are in few leaves."""
        leaf = np.asarray(left) < 0
        says = leaf[:, None] & (value != 0)
        return cls(
            np.where(leaf, -1, feature).astype(np.int32),
            np.where(leaf, 0.0, threshold),
            np.where(leaf, -1, left).astype(np.int32),
            np.where(leaf, -1, right).astype(np.int32),
            says.sum(axis=1).astype(np.int32),
            np.nonzero(says)[1].astype(np.int32),
            np.asarray(value[says], float),
            value.shape[1],
        )


@storable
class Grove(NamedTuple):
    """Binary trees, all nodes in one list; a child comes after its parent.

    feature: [N], the column that a node asks about, -1 in a leaf
    threshold: [N]; a row goes left where its value is no larger
    left, right: [N], places of the children
    begin: [N + 1], where what a node says begins, and that of the last ends
    column, value: [M], what leaves say: a number, and its place among `width`; others are 0
    root: [T], places of the trees' first nodes
    """

    feature: Array
    threshold: FloatArray
    left: Array
    right: Array
    begin: Array
    column: Array
    value: FloatArray
    width: int
    root: Array

    @classmethod
    def of(cls, trees: Iterable[Tree]) -> Grove:
        """All nodes of some trees."""
        grown = list(trees)
        roots = np.cumsum([0, *(len(tree.left) for tree in grown)])

        def joined(name: str) -> Array:
            return np.concatenate([getattr(tree, name) for tree in grown])

        def moved(name: str) -> Array:
            parts = [getattr(tree, name) for tree in grown]
            both = zip(parts, roots.tolist(), strict=False)
            return np.concatenate([np.where(v < 0, -1, v + at) for v, at in both]).astype(np.int32)

        return cls(
            joined("feature"),
            joined("threshold"),
            moved("left"),
            moved("right"),
            np.concatenate([[0], np.cumsum(joined("size"))]),
            joined("column"),
            joined("value"),
            grown[0].width,
            roots[:-1].astype(np.int32),
        )

    def check(self, columns: int) -> None:
        """Refuse arrays that no trees over so many columns have: a file may hold anything."""
        nodes, place = len(self.feature), np.arange(len(self.feature))
        inner = self.feature >= 0
        lengths = {len(v) for v in (self.threshold, self.left, self.right, self.begin[1:])}
        children = np.stack([self.left, self.right])[:, inner]
        places = (self.feature, self.left, self.right, self.begin, self.column, self.root)
        sound = (
            lengths == {nodes}
            and all(v.dtype.kind == "i" and v.ndim == 1 for v in places)
            and self.value.shape == self.column.shape
            and len(self.root) > 0
            and np.isfinite(self.value).all()
            and np.isfinite(self.threshold).all()
            and self.begin[0] == 0
            and self.begin[-1] == len(self.value)
            and np.all(np.diff(self.begin) >= 0)
            and np.all((self.column >= 0) & (self.column < self.width))
            and np.all(self.feature < columns)
            and np.all((children > place[inner]) & (children < nodes))
            and np.all((self.root >= 0) & (self.root < nodes))
        )
        if not sound:
            raise InvalidInput(
                f"a model's trees must ask about its {columns} columns and end in leaves, got "
                "arrays that do not. The file is damaged; fit the model anew."
            )

    def check_leaves(self, group: Array, width: int, groups: int | None = None) -> None:
        """Refuse leaves that do not say `width` numbers, and trees without a group.

        groups: how many there are, of which the last has a tree too; None if it is not known
        """
        must(self.width == width, "what leaves say")
        must(isinstance(group, np.ndarray) and group.dtype.kind == "i", "groups of trees")
        must(group.shape == self.root.shape and group.min() >= 0, "groups of trees")
        must(group.max() < len(group), "groups of trees")
        must(groups is None or group.max() + 1 == groups, "groups of trees")

    def leaves(self, x: Array) -> Array:
        """The leaf of each row in each tree, [T, n]."""
        n, width = x.shape
        found = np.empty((len(self.root), n), np.int32)
        flat, begins = np.ascontiguousarray(x).ravel(), np.arange(n) * width
        child = np.stack([self.right, self.left], axis=1).ravel()
        step = max(1, _TOGETHER // max(1, n))
        for first in range(0, len(self.root), step):
            roots = self.root[first : first + step]
            node, begin = np.repeat(roots, n), np.tile(begins, len(roots))
            at, todo = node, np.arange(len(node))
            while True:
                column = self.feature[at]
                inner = np.flatnonzero(column >= 0)
                if not inner.size:
                    break
                at, begin, todo = at[inner], begin[inner], todo[inner]
                goes_left = flat[begin + column[inner]] <= self.threshold[at]
                at = child[2 * at + goes_left]
                node[todo] = at
            found[first : first + step] = node.reshape(len(roots), n)
        return found

    def sums(self, x: Array, group: Array, groups: int) -> FloatArray:
        """What the leaves of each row say, added up over each group of trees, [groups, n, width].

        group: [T], the group of each tree
        """
        self.check(x.shape[1])
        if group.shape != self.root.shape or np.any((group < 0) | (group >= groups)):
            raise InvalidInput(
                f"a model's trees must each belong to one of {groups} groups, got {len(group)} for "
                f"{len(self.root)} trees. The file is damaged; fit the model anew."
            )
        total = np.empty((groups, len(x), self.width))
        block = max(1, _AT_ONCE // max(1, len(self.root)))
        for begin in range(0, len(x), block):
            some = slice(begin, begin + block)
            total[:, some] = self._said(self.leaves(x[some]), group, groups)
        return total

    def _said(self, leaf: Array, group: Array, groups: int) -> FloatArray:
        """What leaves say, [T, n], added up, [groups, n, width]."""
        n = leaf.shape[1]
        begin = self.begin[leaf]
        size = self.begin[leaf + 1] - begin
        place = (group[:, None] * n + np.arange(n)) * self.width
        total = np.zeros(groups * n * self.width)
        for i in range(size.max(initial=0)):  # the first number of all leaves, the second, ...
            told = size > i
            at = begin[told] + i
            total += np.bincount(place[told] + self.column[at], self.value[at], len(total))
        return total.reshape(groups, n, self.width)


def of_sklearn(tree: Any, value: FloatArray) -> Tree:
    """A tree of scikit-learn's, by its public arrays, with what its nodes say, [N, width]."""
    return Tree.of(tree.feature, tree.threshold, tree.children_left, tree.children_right, value)
