"""From a ranked list to a cleaned file: a person decides row by row, and the model learns along."""

from __future__ import annotations

from mtbayes.reviewing.session import Review

__all__ = ["Review"]
