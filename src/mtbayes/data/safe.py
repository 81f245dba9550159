"""Cells that a spreadsheet takes for text, whatever they begin with."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = "^'*[=+@\t\r-]"  # what a spreadsheet takes for a formula, marked or not
_NUMBER = r"^[+-]?[0-9][0-9.,]*([eE][+-]?[0-9]+)?$"
_MARKED = re.compile("^'+[=+@\t\r-]")


def safe_cells(batch: Any) -> Any:
    """A record batch whose text, names of columns included, is no formula: ' goes before it.

    Numbers stay as they are, also where they are text.

    >>> safe_cells(pa.record_batch({"=a": ["=1+1", "b"], "n": ["-1", "-2,5"]})).to_pydict()
    {"'=a": ["'=1+1", 'b'], 'n': ['-1', '-2,5']}
    """
    names = pa.array(batch.schema.names, pa.string())
    columns = [_safe(c) if pa.types.is_string(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=_safe(names).to_pylist())


def safe_text(text: str) -> str:
    """One cell alike.

    >>> safe_text("=1+1")
    "'=1+1"
    """
    return str(_safe(pa.array([text]))[0].as_py())


def plain_text(text: str) -> str:
    """What `safe_text` was given.

    >>> [plain_text(safe_text(cell)) for cell in ("=1+1", "'=1+1", "-1", "'tis")]
    ['=1+1', "'=1+1", '-1', "'tis"]
    """
    return text[1:] if _MARKED.match(text) else text


def _safe(text: Any) -> Any:
    formula = pc.match_substring_regex(text, _FORMULA)
    risky = pc.and_(formula, pc.invert(pc.match_substring_regex(text, _NUMBER)))
    return pc.if_else(risky, pc.binary_join_element_wise("'", text, ""), text)
