"""What an installed mtbayes must do, in a minute: `python tools/smoke.py`, from any folder.

It uses the package as a user would, by its public names and by its command, and nothing of the
repository. `tools/dist.py` runs it against the oldest and the newest dependencies.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

import mtbayes
from mtbayes import Criterion, RobustClassifier, RobustRegressor, fixed_point, load


def estimators(folder: Path) -> None:
    """Fit, predict, save and load, for classes and numbers."""
    x, y = load_wine(return_X_y=True)
    model = RobustClassifier(epochs=30, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.9, "classes"
    model.save(folder / "wine.mtb")
    np.testing.assert_array_equal(load(folder / "wine.mtb").predict(x), model.predict(x))
    numbers = RobustRegressor(epochs=30, random_state=0).fit(x[:, 1:], x[:, 0])
    assert numbers.score(x[:, 1:], x[:, 0]) > 0.3, "numbers"


def on_a_grid() -> None:
    """Theorem 1."""
    theta = np.linspace(-3, 3, 61)
    log_lik = -0.5 * (theta[:, None] - np.array([0.5, 1.0])) ** 2
    q = fixed_point(log_lik, np.full(61, 1 / 61), Criterion(m=1, t=1.0)).state
    assert abs(q @ theta - 0.75) < 0.01, "the mean of two points"


def command(*words: str, folder: Path) -> str:
    """What `mtbayes` prints; an error ends the program."""
    program = str(Path(sys.executable).with_name("mtbayes"))
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mtbayes {' '.join(words)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def files(folder: Path) -> None:
    """A file through the command: a model, predictions, pages."""
    x, y = load_wine(return_X_y=True)
    lines = [f"{a:.2f},{b:.2f},kind {label}" for (a, b), label in zip(x[:, :2], y, strict=True)]
    (folder / "wine.csv").write_text("\n".join(["alcohol,acid,kind", *lines]) + "\n")
    command("--help", folder=folder)
    brief = ("--learner", "trees", "--quiet")
    command("fit", "wine.csv", "--target", "kind", "--model", "file.mtb", *brief, folder=folder)
    told = command("predict", "file.mtb", "wine.csv", folder=folder)
    assert len(told.splitlines()) == len(x) + 1, "a line for each row"
    command("report", "file.mtb", "wine.csv", "--quiet", folder=folder)
    command("explore", "-o", "explore.html", "--no-browser", folder=folder)
    command("reproduce", "tlog", "--out", "paper", "--quiet", folder=folder)


def main() -> None:
    """All of it."""
    assert mtbayes.__version__ == metadata.version("mtbayes"), "the version of the installed wheel"
    assert (Path(mtbayes.__file__).parent / "py.typed").exists(), "types reach users"
    with tempfile.TemporaryDirectory() as name:
        on_a_grid()
        estimators(Path(name))
        files(Path(name))
    print(f"smoke: mtbayes {mtbayes.__version__} works from {Path(mtbayes.__file__).parent}")


if __name__ == "__main__":
    main()
