"""Pages are tested in a folder of their own, where they may write files."""

import pytest

collect_ignore = ["docstrings.py"]  # it needs mkdocstrings


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
