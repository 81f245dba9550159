"""What a release says of itself is one thing everywhere."""

import re
from pathlib import Path

import mtbayes

ROOT = Path(__file__).parents[1]


def test_the_version_stands_in_the_changelog_and_the_citation():
    version = re.escape(mtbayes.__version__)
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[{version}\] - \d{{4}}-\d\d-\d\d$", changes, re.M)
    assert re.search(rf"^version: {version}$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)


def test_changes_to_come_have_a_place():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert headings[:2] == ["Unreleased", mtbayes.__version__]
