"""What a command leaves out, or puts off until it is asked for, so that it starts and ends sooner.

scikit-learn and others import pandas where it is installed, and SciPy's statistics, for uses that
no table in a file has. And the interpreter looks through all that was imported for garbage, again
and again while it grows, and once more at the end.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

_ABSENT = "pandas"
_LATER = "scipy.stats"
_NAMES = ("chi2", "gmean", "rankdata", "spearmanr")  # that scikit-learn's trees take, and never use
_DOWNLOADS = "reproduce"  # the command whose data sets are read by pandas
_NEW = 100_000  # objects, after which garbage is looked for; Python's own 700 suit small programs


def start_sooner() -> None:
    """Before anything is imported that takes long; for this process, which is a command's."""
    gc.set_threshold(_NEW)
    if sys.argv[1:2] == [_DOWNLOADS]:
        return
    sys.meta_path.insert(0, _Without())
    sys.modules.setdefault(_LATER, _Later(_LATER))


def end_sooner() -> None:
    """Last of all: what is left goes with the process, and is not looked through for garbage."""
    gc.freeze()


class _Without(MetaPathFinder):
    """Says of a module that it is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == _ABSENT:
            raise ModuleNotFoundError(f"{name} is left out of commands", name=name)


class _Later(ModuleType):
    """A package that is imported when something in it is asked for; of some names, when used."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # which `from` asks for, whatever is taken
            return self._places()
        return _LaterName(self, name) if name in _NAMES else self.found(name)

    def _places(self) -> Any:
        """Where the package's modules lie."""
        parent, _, _ = self.__name__.rpartition(".")
        found = PathFinder.find_spec(self.__name__, import_module(parent).__path__)
        return None if found is None else found.submodule_search_locations

    def found(self, name: str) -> Any:
        """What the package itself has under a name."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _LaterName:
    """A function or a distribution of such a package."""

    def __init__(self, package: _Later, name: str) -> None:
        self._package, self._name = package, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._package.found(self._name)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package.found(self._name), name)
