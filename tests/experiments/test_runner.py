"""The runner: what is missing is computed, and only that; nothing is lost with a kill."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path

import joblib
import pytest
from joblib.parallel import ThreadingBackend

from mtbayes.errors import InvalidInput
from mtbayes.experiments import runner
from mtbayes.experiments.results import Row, read_rows, read_table
from mtbayes.experiments.runner import Found, How, Study
from mtbayes.progress import silent

CALLS = []


@dataclass(frozen=True)
class Square:
    x: float
    seed: int
    cost = 1.0
    label = "square"

    def run(self):
        CALLS.append((self.x, self.seed))
        row = Row("", "m", "d", 1, 1.0, 1.0, 1.0, 0.0, self.seed, "square", self.x**2 + self.seed)
        return Found([row], {"curve": {"x": [self.x] * 2, "name": ["a", "b"], "y": [1.5, self.x]}})


@dataclass(frozen=True)
class Squares:
    values: tuple[float, ...]
    seeds: int = 1

    def cells(self):
        return [Square(x, seed) for seed in range(self.seeds) for x in self.values]


STUDY = Study("squares", "squares", Squares((1.0, 0.1)), Squares((1.0, 0.1, 3.0), seeds=2))


def files(folder):
    """Where the file of a cell is, by its key."""
    return lambda key: folder / f"{key}.json"


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def test_rows_stand_in_the_spec_s_order_under_the_study_s_name(tmp_path):
    STUDY.run(tmp_path, silent, How())
    rows = read_rows(tmp_path / "squares" / "results.csv")
    assert [(r.experiment, r.value) for r in rows] == [("squares", 1.0), ("squares", 0.01)]
    table = read_table(tmp_path / "squares" / "curve.csv")
    assert table["x"].tolist() == [1.0, 1.0, 0.1, 0.1]
    assert table["name"].tolist() == ["a", "b", "a", "b"]
    about = json.loads((tmp_path / "squares" / "run.json").read_text())
    assert about["mode"] == "quick"
    assert about["spec"] == {"values": [1.0, 0.1], "seeds": 1}


def test_only_what_is_missing_is_computed(tmp_path):
    STUDY.run(tmp_path, silent, How())
    STUDY.run(tmp_path, silent, How(full=True))
    assert CALLS == [(1.0, 0), (0.1, 0), (3.0, 0), (1.0, 1), (0.1, 1), (3.0, 1)]
    assert len(read_rows(tmp_path / "squares" / "results.csv")) == 6
    STUDY.run(tmp_path, silent, How(seeds=2))
    assert len(CALLS) == 6


def test_a_key_is_of_settings_class_and_version(monkeypatch):
    @dataclass(frozen=True)
    class Other(Square):
        pass

    first = runner.key(Square(1.0, 0))
    assert first == runner.key(Square(1.0, 0))
    keys = {first, runner.key(Square(1.0, 1)), runner.key(Other(1.0, 0))}
    monkeypatch.setattr(runner, "__version__", "9.9")
    assert len(keys | {runner.key(Square(1.0, 0))}) == 4


def test_progress_counts_what_was_there_before(tmp_path):
    STUDY.run(tmp_path, silent, How())
    heard = []
    spec = replace(STUDY.quick, values=(1.0, 0.1, 5.0, 6.0))
    runner.compute(spec.cells(), files(tmp_path / "cells"), lambda p: heard.append(p.share))
    assert heard == [0.5, 0.75, 1.0]


def test_a_cell_that_fails_leaves_the_others(tmp_path, monkeypatch):
    def run(self, good=Square.run):
        if self.x == 3.0 and self.seed == 1:
            raise RuntimeError("no")
        return good(self)

    monkeypatch.setattr(Square, "run", run)
    with pytest.raises(RuntimeError, match="no"):
        STUDY.run(tmp_path, silent, How(full=True))
    assert len(list((tmp_path / "cells").iterdir())) == 5
    assert not (tmp_path / "squares").exists()


class ListsAlone(ThreadingBackend):
    """As Ray's: it cannot hand out results one by one."""

    supports_return_generator = False


def test_a_backend_that_gives_lists_alone_serves_too_and_keeps_what_is_done(tmp_path, monkeypatch):
    joblib.register_parallel_backend("lists", ListsAlone)
    spec = Squares(tuple(range(20)))

    def run(self, good=Square.run):
        if self.x == 15:
            raise RuntimeError("no")
        return good(self)

    with joblib.parallel_config(backend="lists", n_jobs=2):
        with monkeypatch.context() as patch:
            patch.setattr(Square, "run", run)
            with pytest.raises(RuntimeError, match="no"):
                runner.compute(spec.cells(), files(tmp_path), silent)
        assert len(list(tmp_path.iterdir())) == 8
        done = runner.compute(spec.cells(), files(tmp_path), silent)
    assert [content["rows"][0][-1] for content in done] == [x**2 for x in range(20)]


def test_jobs_are_checked(tmp_path):
    with pytest.raises(InvalidInput, match="jobs"):
        STUDY.run(tmp_path, silent, How(jobs=0))


# Cells that workers can import. Those of a process that is to be killed take their time.
SCRIPT = """
    import sys, time
    from dataclasses import dataclass
    from pathlib import Path
    from mtbayes.experiments.runner import Found, How, Study
    from mtbayes.experiments.results import Row

    SECONDS = 0.3

    @dataclass(frozen=True)
    class Slow:
        x: int
        cost = 1.0
        label = "slow"

        def run(self):
            time.sleep(SECONDS)
            return Found([Row("", "m", "d", 1, 1.0, 1.0, 1.0, 0.0, 0, "cube", 0.1 * self.x**3)])

    @dataclass(frozen=True)
    class Some:
        seeds: int = 6

        def cells(self):
            return [Slow(x) for x in range(self.seeds)]

    def main(out, jobs):
        Study("slow", "", Some(), Some()).run(out, lambda _: None, How(jobs=jobs))

    if __name__ == "__main__":
        main(Path(sys.argv[1]), int(sys.argv[2]) or None)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "slow_cells.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def test_killed_and_continued_ends_in_the_same_rows(tmp_path, script):
    """Only what is killed is a process of its own: to import the package takes seconds."""
    exec(textwrap.dedent(SCRIPT), here := {"__name__": "slow_cells"})
    here["SECONDS"] = 0.0
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    here["main"](whole, 1)
    process = subprocess.Popen([sys.executable, script, killed, "1"])
    cells = killed / "cells"
    while not (cells.is_dir() and len(list(cells.glob("[!.]*.json"))) >= 2):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path.name: path.stat().st_mtime_ns for path in cells.glob("[!.]*.json")}
    assert 2 <= len(before) < 6
    assert not (killed / "slow").exists()
    here["main"](killed, 1)
    assert _results(killed) == _results(whole)
    assert {name: (cells / name).stat().st_mtime_ns for name in before} == before


@pytest.mark.slow
def test_processes_and_a_dask_cluster_give_the_same_rows(tmp_path, script):
    subprocess.run([sys.executable, script, tmp_path / "one", "1"], check=True)
    subprocess.run([sys.executable, script, tmp_path / "two", "2"], check=True)
    assert _results(tmp_path / "two") == _results(tmp_path / "one")
    # Not one line of the runner knows of Dask: the caller's configuration is all.
    cluster = """
        import sys
        from pathlib import Path
        import joblib
        from distributed import Client
        import slow_cells

        if __name__ == "__main__":
            with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
                with joblib.parallel_config(backend="dask"):
                    slow_cells.main(Path(sys.argv[1]), None)
                done = sum(len(v) for v in client.run(lambda dask_worker: dask_worker.state.log
                    ).values())
                print("transitions", done)
    """
    path = script.parent / "on_dask.py"
    path.write_text(textwrap.dedent(cluster))
    command = [sys.executable, path, tmp_path / "dask"]
    environment = os.environ | {"PYTHONPATH": str(script.parent)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert _results(tmp_path / "dask") == _results(tmp_path / "one")
    assert int(done.stdout.split()[-1]) > 6  # the workers did it


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_all_rows(tmp_path, script):
    subprocess.run([sys.executable, script, tmp_path / "one", "1"], check=True)
    cluster = """
        import os, signal, sys, threading, time
        from pathlib import Path
        import joblib
        from distributed import Client
        import slow_cells

        def kill(pid, cells):
            while not list(cells.glob("[!.]*.json")):
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
            print("killed after", len(list(cells.glob("[!.]*.json"))))

        if __name__ == "__main__":
            out = Path(sys.argv[1])
            with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
                workers = client.run(os.getpid)
                assert len(workers) == 2
                pid = next(iter(workers.values()))
                killer = threading.Thread(target=kill, args=(pid, out / "cells"))
                killer.start()
                with joblib.parallel_config(backend="dask"):
                    slow_cells.main(out, None)
                killer.join()
                assert pid not in client.run(os.getpid).values()
    """
    path = script.parent / "on_less.py"
    path.write_text(textwrap.dedent(cluster))
    environment = os.environ | {"PYTHONPATH": str(script.parent)}
    command = [sys.executable, path, tmp_path / "dask"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert 1 <= int(done.stdout.split()[-1]) < 6  # in the middle
    assert _results(tmp_path / "dask") == _results(tmp_path / "one")


def _results(out: Path) -> str:
    return (out / "slow" / "results.csv").read_text()
