"""`mtbayes cache`: programs that JAX has compiled, kept from one command to the next."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mtbayes.commands import options
from mtbayes.commands.screen import Screen

_MOST = 256 * 2**20  # bytes that are kept; the oldest go first
_NAME = "JAX_COMPILATION_CACHE_DIR"


def folder() -> Path:
    """Where compiled programs are kept: where JAX is told to, or the user's folder for caches."""
    if os.environ.get(_NAME):
        return Path(os.environ[_NAME])
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "mtbayes" / "programs"


def keep_programs() -> None:
    """Have JAX keep what it compiles, within bounds; to be called before it is imported.

    A user's own setting of JAX stands, an empty one too: nothing is kept then.
    """
    if _NAME in os.environ:
        return
    path = folder()
    try:
        path.mkdir(parents=True, exist_ok=True)
        _trim(path)
    except OSError:
        return  # a home that cannot be written to: programs are compiled anew
    os.environ[_NAME] = str(path)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete what is kept.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show how much is kept of what was compiled, or delete it.

    Compiled programs make the next command start sooner. At most 256 MB are kept.

    Example: mtbayes cache --clear
    """
    with Screen(quiet=quiet, as_json=as_json, debug=False) as screen:
        path = folder()
        files = _files(path)
        size = sum(info.st_size for _, info in files)
        if clear:
            for file, _ in files:
                file.unlink(missing_ok=True)
        verb = "deleted from" if clear else "kept in"
        screen.line(f"{len(files)} compiled programs, {size / 2**20:.1f} MB, {verb} {path}")
        screen.done({"folder": str(path), "programs": len(files), "bytes": size, "cleared": clear})


def _files(path: Path) -> list[tuple[Path, os.stat_result]]:
    """Files of a folder, the oldest first; none where there is no folder."""
    if not path.is_dir():
        return []
    found = []
    for entry in os.scandir(path):
        try:
            if entry.is_file():
                found.append((Path(entry.path), entry.stat()))
        except FileNotFoundError:  # another command has deleted it
            continue
    return sorted(found, key=lambda each: each[1].st_mtime)


def _trim(path: Path) -> None:
    files = _files(path)
    over = sum(info.st_size for _, info in files) - _MOST
    for file, info in files:
        if over <= 0:
            break
        file.unlink(missing_ok=True)
        over -= info.st_size
