"""One rival in its own process; it works when told to and sleeps otherwise.

Commands come as lines of JSON on standard input, answers go out likewise: {"case": ...} builds and
warms up, {"steps": k} runs k steps or so and tells how long they took.
"""

import importlib
import json
import os
import sys
import time

from workloads import Workload

THREADS = 2
RIVALS = {
    "mtbayes": "rivals_ours.ours",
    "mtbayes, no pool": "rivals_ours.ours_fresh",
    "torch, weights drawn": "rivals_torch.weights",
    "torch, rows drawn": "rivals_torch.rows",
    "torch, pool": "rivals_torch.pool",
    "torch.compile": "rivals_torch.compiled",
    "torch.compile, pool": "rivals_torch.compiled_pool",
    "bayesian-torch": "rivals_bayesian_torch.passes",
    "numpyro": "rivals_numpyro.svi",
    "scikit-learn, 1 network": "rivals_sklearn.perceptron",
    "mtbayes, ensemble": "rivals_ours.ours_ensemble",
    "torch, ensemble": "rivals_torch.ensemble",
    "torch.compile, ensemble": "rivals_torch.ensemble_compiled",
}


def build(rival: str, case: Workload):
    module, name = RIVALS[rival].split(".")
    return getattr(importlib.import_module(module), name)(case)


def warm(run, budget: float) -> dict:
    """Compile, choose the threads where one can, and the steps that fill `budget` seconds."""
    begin = time.perf_counter()
    run(4)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    _, again = run(4)
    compiling = max(0.0, first - (time.perf_counter() - begin))
    threads = run.tune(budget / 2) if hasattr(run, "tune") else THREADS
    steps = 4
    while again < budget / 4 and steps < 4096:
        steps *= 4
        run(steps)  # a new number of steps may need another compilation
        steps, again = run(steps)
    return {"compile_s": compiling, "steps": steps, "threads": threads}


def answer(rival: str, state: dict, command: dict) -> dict:
    try:
        if "case" in command:
            state.clear()
            state["run"] = build(rival, Workload.from_json(command["case"]))
            return warm(state["run"], command["budget"])
        steps, seconds = state["run"](command["steps"])
        return {"ms": 1e3 * seconds / steps}
    except NotImplementedError as error:
        return {"cannot": str(error)}
    except Exception as error:
        return {"cannot": f"{type(error).__name__}: {error}".splitlines()[0][:100]}


def main() -> None:
    # Libraries may print: keep the real standard output for answers alone.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    state: dict = {}
    for line in sys.stdin:
        print(json.dumps(answer(sys.argv[1], state, json.loads(line))), file=out)


if __name__ == "__main__":
    main()
