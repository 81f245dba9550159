"""A command starts without pandas, and with SciPy's statistics only where they are asked for."""

import subprocess
import sys

import pytest

LOADED = "scipy.stats._stats_py"
CODE = f"""
import sys
sys.argv = ["mtbayes", sys.argv[1]]
from mtbayes.commands.startup import start_sooner
start_sooner()
import sklearn.base
early = "pandas" in sys.modules or {LOADED!r} in sys.modules
from scipy import stats
from scipy.stats.mstats import mquantiles
try:
    import pandas
except ModuleNotFoundError:
    absent = True
else:
    absent = False
print(early, absent, round(stats.norm.ppf(0.975), 4), mquantiles([1, 2, 3], 0.5).item())
"""


@pytest.mark.parametrize(
    ("command", "told"),
    [("audit", "False True 1.96 2.0"), ("reproduce", "True False 1.96 2.0")],
)
def test_what_is_imported(command, told):
    found = subprocess.run(
        [sys.executable, "-c", CODE, command], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == told


def test_an_audit_imports_no_module_that_it_does_not_need():
    code = (
        "import sys, mtbayes.commands.audit, mtbayes.commands.learning, mtbayes.tables.words; "
        "print([n for n in ('lightgbm', 'sklearn.ensemble', 'sklearn.tree', 'sklearn.metrics', "
        "'sklearn.inspection', 'matplotlib', 'pyarrow.dataset', 'mtbayes.reviewing') "
        "if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_trees_are_imported_without_statistics_and_those_are_there_when_used():
    code = f"""
import sys
sys.argv = ["mtbayes", "audit"]
from mtbayes.commands.startup import start_sooner
start_sooner()
import lightgbm, sklearn.tree
early = {LOADED!r} in sys.modules
from sklearn.covariance._robust_covariance import chi2
from sklearn.metrics._ranking import rankdata
print(early, rankdata([3, 1, 2]).tolist(), round(chi2(2).ppf(0.5), 4), round(chi2.ppf(0.5, 2), 4))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False [3.0, 1.0, 2.0] 1.3863 1.3863"


def test_garbage_is_seldom_looked_for_and_not_at_the_end():
    code = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 10_000))
sys.argv = ["mtbayes", "--version"]
from mtbayes.cli import run
run()
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "True True"
