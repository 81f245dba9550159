"""Types reach users: a program that uses the public names passes mypy's strictest rules."""

import subprocess
import sys
from pathlib import Path

import pytest

import mtbayes

ROOT = Path(mtbayes.__file__).parents[1]

PROGRAM = """
import numpy as np
from numpy.typing import NDArray

import mtbayes
from mtbayes import (
    Categorical, Criterion, Model, Progress, RobustClassifier, RobustDensity, RobustRegressor,
    Solution, Status, fit, fixed_point, load, log_t, mean_field, mlp, predictive,
)

x: NDArray[np.float64] = np.zeros((4, 2))
y = np.array([0, 1, 0, 1])
model: RobustClassifier = RobustClassifier(t=0.7, random_state=0).fit(x, y)
model.predict_proba(x)
model.find_outliers(x, y)
RobustRegressor().fit(x, x[:, 0]).predict(x)
RobustDensity().fit(x)
criterion: Criterion = Criterion(m=10, t=0.5, beta=10.0)
found: Solution = fixed_point(np.zeros((3, 2)), np.full(3, 1 / 3), criterion)
ended: Status = found.status
words: str = ended.sentence
network = Model(mlp((2, 8, 2)), Categorical(2))


def listen(progress: Progress) -> None:
    print(progress.share)


def main() -> str:
    return mtbayes.__version__
"""

MISTAKE = """
from mtbayes import Criterion

weight: str = Criterion(m=10, t=0.5).regulariser_weight(5)
"""


def checked(text, folder):
    """What mypy --strict says of a program that imports an installed mtbayes."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    (folder / "mypy.ini").write_text("[mypy]\nfollow_imports = silent\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder), "program.py"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={"MYPYPATH": str(ROOT)}
    )


@pytest.mark.slow
def test_a_program_passes_and_a_mistake_does_not(tmp_path):
    assert (Path(mtbayes.__file__).parent / "py.typed").exists()
    found = checked(PROGRAM, tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    wrong = checked(MISTAKE, tmp_path)
    assert wrong.returncode == 1
    assert "Incompatible types in assignment" in wrong.stdout
