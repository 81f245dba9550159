import os
from importlib import import_module

import pytest
from typer.testing import CliRunner

from mtbayes.cli import app

cache = import_module("mtbayes.commands.cache")  # the package shows the command by this name
NAME = "JAX_COMPILATION_CACHE_DIR"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in list(os.environ):
        if name == NAME or name.startswith("JAX_PERSISTENT_CACHE"):
            monkeypatch.delenv(name)
    # What is set by the code under test goes again with the test.
    for name in (NAME, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    return tmp_path


def test_programs_are_kept_in_the_users_folder(home):
    cache.keep_programs()
    assert os.environ.pop(NAME) == str(home / "mtbayes" / "programs")
    os.environ.pop("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    os.environ.pop("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES")
    assert (home / "mtbayes" / "programs").is_dir()


def test_a_users_setting_stands(home, monkeypatch):
    monkeypatch.setenv(NAME, "")
    cache.keep_programs()
    assert os.environ[NAME] == ""
    assert not (home / "mtbayes").exists()


def test_the_oldest_go_first(home, monkeypatch):
    monkeypatch.setattr(cache, "_MOST", 250)
    folder = home / "mtbayes" / "programs"
    folder.mkdir(parents=True)
    for i in range(4):
        (folder / f"{i}").write_bytes(bytes(100))
        os.utime(folder / f"{i}", (i, i))
    cache.keep_programs()
    for name in (NAME, *(n for n in os.environ if n.startswith("JAX_PERSISTENT_CACHE"))):
        os.environ.pop(name, None)
    assert sorted(file.name for file in folder.iterdir()) == ["2", "3"]


def test_shown_and_cleared(home):
    folder = home / "mtbayes" / "programs"
    folder.mkdir(parents=True)
    (folder / "one").write_bytes(bytes(2**20))
    found = CliRunner().invoke(app, ["cache"])
    assert "1 compiled programs, 1.0 MB" in found.output
    assert CliRunner().invoke(app, ["cache", "--clear"]).exit_code == 0
    assert not list(folder.iterdir())


def test_a_home_that_cannot_be_written_to(monkeypatch, tmp_path):
    monkeypatch.delenv(NAME, raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache.keep_programs()
    assert NAME not in os.environ
