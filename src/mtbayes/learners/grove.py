"""Trees as arrays: grown by others, stored as data, walked here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mtbayes._values import must, storable
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

# Feature, threshold, left, right and value[N, V] of a tree's nodes.
Tree: TypeAlias = tuple[Array, Array, Array, Array, Array]
_AT_ONCE = 2**20  # leaves that are remembered together, trees × rows
_TOGETHER = 2**15  # and walked to: fewer cost Python's time, more the processor's cache


@storable
class Grove(NamedTuple):
    """Binary trees, all nodes in one list; a child comes after its parent.

    feature: [N], the column that a node asks about, -1 in a leaf
    threshold: [N]; a row goes left where its value is no larger
    left, right: [N], places of the children
    value: [N, V], what a leaf says
    root: [T], places of the trees' first nodes
    """

    feature: Array
    threshold: FloatArray
    left: Array
    right: Array
    value: FloatArray
    root: Array

    @classmethod
    def of(cls, trees: Iterable[Tree]) -> Grove:
        """All nodes of some trees."""
        parts, roots, at = [], [], 0
        for feature, threshold, left, right, value in trees:
            leaf = np.asarray(left) < 0
            parts.append(
                (
                    np.where(leaf, -1, feature).astype(np.int32),
                    np.where(leaf, 0.0, threshold),
                    np.where(leaf, -1, np.asarray(left) + at).astype(np.int32),
                    np.where(leaf, -1, np.asarray(right) + at).astype(np.int32),
                    np.asarray(value, float),
                )
            )
            roots.append(at)
            at += len(leaf)
        feature, threshold, left, right, value = map(np.concatenate, zip(*parts, strict=True))
        return cls(feature, threshold, left, right, value, np.array(roots, np.int32))

    def check(self, columns: int) -> None:
        """Refuse arrays that no trees over so many columns have: a file may hold anything."""
        nodes, place = len(self.feature), np.arange(len(self.feature))
        inner = self.feature >= 0
        lengths = {len(v) for v in (self.threshold, self.left, self.right, self.value)}
        children = np.stack([self.left, self.right])[:, inner]
        places = (self.feature, self.left, self.right, self.root)
        sound = (
            lengths == {nodes}
            and all(v.dtype.kind == "i" and v.ndim == 1 for v in places)
            and self.value.ndim == 2
            and len(self.root) > 0
            and np.isfinite(self.value).all()
            and np.isfinite(self.threshold).all()
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
        must(self.value.shape[1] == width, "what leaves say")
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
        """What the leaves of each row say, added up over each group of trees, [groups, n, V].

        group: [T], the group of each tree
        """
        self.check(x.shape[1])
        if group.shape != self.root.shape or np.any((group < 0) | (group >= groups)):
            raise InvalidInput(
                f"a model's trees must each belong to one of {groups} groups, got {len(group)} for "
                f"{len(self.root)} trees. The file is damaged; fit the model anew."
            )
        total = np.zeros((groups, len(x), self.value.shape[1]))
        block = max(1, _AT_ONCE // max(1, len(self.root)))
        for begin in range(0, len(x), block):
            some = slice(begin, begin + block)
            for tree, leaf in enumerate(self.leaves(x[some])):
                total[group[tree], some] += self.value[leaf]
        return total


def of_sklearn(tree: Any, value: FloatArray) -> Tree:
    """A tree of scikit-learn's, by its public arrays, with what its nodes say, [N, V]."""
    return tree.feature, tree.threshold, tree.children_left, tree.children_right, value
