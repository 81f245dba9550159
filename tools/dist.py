"""`make dist`: sdist and wheel into dist/, and the wheel tried in empty environments.

Each environment has the oldest versions of all dependencies that pyproject.toml allows, or the
newest that the index has. In each the wheel is installed, the smoke test and the demo are run, and
the time of `import mtbayes` is taken. `--python` adds interpreters to the one that runs this.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT = "import time; s = time.perf_counter(); import mtbayes; print(time.perf_counter() - s)"


def oldest(dependencies: list[str]) -> list[str]:
    """The lowest version of each that its bound allows.

    >>> oldest(["jax>=0.6", "typer>=0.15.4,<1"])
    ['jax==0.6', 'typer==0.15.4']
    """
    return [re.sub(r">=([\d.]+).*", r"==\1", one) for one in dependencies]


def run(*words: object, quiet: bool = True) -> str:
    """A command in a folder of its own, so that nothing of the repository is imported."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(w) for w in words], cwd=folder, env=clean, capture_output=quiet, text=True
        )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout or ''}{done.stderr or ''}")
    return done.stdout or ""


def built(out: Path) -> Path:
    """Both files, new; the wheel's path."""
    shutil.rmtree(out, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", out, ROOT)
    for path in sorted(out.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
    return next(out.glob("*.whl"))


def tried(wheel: Path, python: str, pins: list[str], name: str, demo: bool) -> None:
    """One environment: install, smoke test, demo, time of import."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        inside = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        own = inside / "python"
        pip = (own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        started = time.monotonic()
        run(*pip, wheel, *pins)
        installed = time.monotonic() - started
        run(own, "-m", "pip", "check")
        print(run(own, ROOT / "tools" / "smoke.py").strip())
        if demo:
            run(inside / "mtbayes", "demo", "--out", Path(folder) / "demo", "--quiet")
        times = [float(run(own, "-c", IMPORT)) for _ in range(5)]
        print(
            f"{name}: installed in {installed:.0f} s; smoke test{' and demo' * demo} passed; "
            f"import mtbayes takes {1000 * statistics.median(times):.0f} ms"
        )


def main() -> None:
    """Build, then try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", nargs="*", default=[], help="further interpreters, newest only")
    parser.add_argument("--no-demo", action="store_true", help="the smoke test alone")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wheel = built(options.out.absolute())
    demo = not options.no_demo
    tried(wheel, sys.executable, oldest(project["dependencies"]), "oldest dependencies", demo)
    tried(wheel, sys.executable, [], "newest dependencies", demo)
    for python in options.python:
        tried(wheel, python, [], f"{python}, newest dependencies", demo)


if __name__ == "__main__":
    main()
