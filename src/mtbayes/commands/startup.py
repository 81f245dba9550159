"""What a command leaves out, or puts off until it is asked for, so that it starts sooner.

scikit-learn and others import pandas where it is installed, and SciPy's statistics, for uses that
no table in a file has. Together that is a third of the time until the first row is read.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

_ABSENT = "pandas"
_LATER = "scipy.stats"
_DOWNLOADS = "reproduce"  # the command whose data sets are read by pandas


def start_sooner() -> None:
    """Before anything is imported that takes long; for this process, which is a command's."""
    if sys.argv[1:2] == [_DOWNLOADS]:
        return
    sys.meta_path.insert(0, _Without())
    sys.modules.setdefault(_LATER, _Later(_LATER))


class _Without(MetaPathFinder):
    """Says of a module that it is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == _ABSENT:
            raise ModuleNotFoundError(f"{name} is left out of commands", name=name)


class _Later(ModuleType):
    """A module that is imported when something in it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)
