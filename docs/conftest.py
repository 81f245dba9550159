"""Pages are tested in a folder of their own, where they may write files."""

import pytest

collect_ignore = ["docstrings.py", "typeset.py"]  # they need the tools of the site


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
