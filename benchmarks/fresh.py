"""What a fresh process pays: import, first fit with its compilation, peak memory.

`measure()` starts the processes; `python fresh.py NAME` is one of them and prints JSON.
"""

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace

from workloads import MAIN, MNIST, data

HOUSING = replace(MAIN[2], rows=20640)
FULL_MNIST = replace(MNIST, rows=60000)


def peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def one_fit(rival: str, case, epochs: int) -> None:
    if rival == "torch":
        module = importlib.import_module("rivals_torch")
        module.Training(case, module.cheaper(case))(epochs * case.batches)
        return
    import jax
    from rivals_ours import model_of

    from mtbayes.criteria import Criterion
    from mtbayes.posteriors import Particles, mean_field
    from mtbayes.solve import fit

    x, y = data(case)
    criterion, posterior = Criterion(case.m, 0.7), mean_field()
    if rival == "ten modes":
        criterion, posterior = Criterion(1, 0.7, joint=False), Particles(10)
    key = jax.random.key(0)
    fit(model_of(case), x, y, criterion, key=key, posterior=posterior, epochs=epochs)


def first_fit(rival: str) -> dict:
    """Import, then a fit of 8-10-10-1 for three epochs."""
    begin = time.perf_counter()
    importlib.import_module("rivals_torch" if rival == "torch" else "rivals_ours")
    imported = time.perf_counter()
    one_fit(rival, HOUSING, epochs=3)
    return {"import_s": imported - begin, "fit_s": time.perf_counter() - imported}


def memory(rival: str) -> dict:
    """What a fit to all of MNIST adds to a small fit's peak, the caller's own rows included."""
    one_fit(rival, HOUSING, epochs=1)
    before = peak_mb()
    one_fit(rival, FULL_MNIST, epochs=1)
    rows = FULL_MNIST.rows * 784 * 4 / 1e6
    added = peak_mb() - before
    return {"before_mb": before, "added_mb": added, "rows_mb": rows, "added/rows": added / rows}


def import_time() -> dict:
    """The package alone, and then with every public name, which loads what they need."""
    begin = time.perf_counter()
    package = importlib.import_module("mtbayes")
    imported = time.perf_counter() - begin
    for name in package.__all__:
        getattr(package, name)
    return {"import_s": imported, "all_names_s": time.perf_counter() - begin}


def child(*arguments: str, **environment: str) -> dict:
    """Run one measurement in a process of its own; adds its whole wall time."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return {**json.loads(done.stdout.splitlines()[-1]), "process_s": time.perf_counter() - begin}


def typical(repeats: int, *arguments: str, **environment: str) -> dict:
    """The median of each number over several processes."""
    runs = [child(*arguments, **environment) for _ in range(repeats)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def measure(repeats: int):
    """Title and numbers of each measurement."""
    yield "import mtbayes", typical(repeats, "import")
    yield "first fit, no cache", typical(repeats, "first", "mtbayes")
    with tempfile.TemporaryDirectory() as folder:
        cache = {
            "JAX_COMPILATION_CACHE_DIR": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
        }
        yield "first fit, cold cache", child("first", "mtbayes", **cache)
        yield "first fit, warm cache", typical(repeats, "first", "mtbayes", **cache)
    # So small a network is fastest with one thread.
    yield "first fit, torch", typical(repeats, "first", "torch", OMP_NUM_THREADS="1")
    yield "memory, mtbayes", child("memory", "mtbayes")
    yield "memory, ten modes", child("memory", "ten modes")
    yield "memory, torch", child("memory", "torch")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print(json.dumps({"import": import_time, "first": first_fit, "memory": memory}[what](*rest)))
