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
        "import sys, mtbayes.commands.audit, mtbayes.commands.learning, mtbayes.tables.model; "
        "print([n for n in ('lightgbm', 'sklearn.ensemble', 'sklearn.tree', 'sklearn.metrics', "
        "'matplotlib') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
