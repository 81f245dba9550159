"""What the documents say of their numbers' age is true, and no number is without its command."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("evidence", ROOT / "tools" / "evidence.py")
evidence = importlib.util.module_from_spec(spec)
spec.loader.exec_module(evidence)

ENTRIES = evidence.entries()
TEXT = evidence.PAGE.read_text("utf-8")
RULE = "Run `make evidence`, which says openly what is old; or measure, and record that."


def test_the_page_is_what_the_command_writes():
    """But for freshness, which the next test is about: work on the code need not touch the page."""
    assert evidence.page(ENTRIES, evidence.claimed(TEXT, ENTRIES)) == TEXT, RULE


def test_what_is_called_fresh_was_measured_on_this_code():
    claims = evidence.claimed(TEXT, ENTRIES)
    fresh = [one for one in ENTRIES if claims[one["name"]] == evidence.FRESH]
    if fresh:
        true = evidence.states(fresh, evidence.Code(evidence.working()))
        assert not [name for name, state in true.items() if state == evidence.OLD], RULE


def test_every_entry_leads_somewhere():
    assert len({one["name"] for one in ENTRIES}) == len(ENTRIES)
    for one in ENTRIES:
        assert all((ROOT / path).exists() for path in one["files"] + one["code"]), one["name"]
        assert all((ROOT / "docs" / path).exists() for path in one["pages"]), one["name"]
        assert re.fullmatch(r"[0-9a-f]{7} \d{4}-\d\d-\d\d", f"{one['commit']} {one['date']}")


def test_every_saved_number_has_an_entry():
    saved = [
        path.relative_to(ROOT)
        for ending in ("csv", "json")
        for path in (ROOT / "docs").rglob(f"*.{ending}")
        if path != evidence.MANIFEST
    ]
    homes = [Path(file) for one in ENTRIES for file in one["files"]]
    assert saved
    assert not [path for path in saved if not any(path.is_relative_to(home) for home in homes)]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: p.stem)
def test_a_page_that_names_a_benchmark_has_its_entry(page):
    if page == evidence.PAGE:
        return
    named = set(re.findall(r"benchmarks/[a-z_]+\.py", page.read_text("utf-8")))
    name = page.relative_to(ROOT / "docs").as_posix()
    listed = {code for one in ENTRIES if name in one["pages"] for code in one["code"]}
    assert not named - listed


SOURCES = {
    "benchmarks/run.py": "from mtbayes import Fit\nimport helper\nprint(Fit, helper)\n",
    "benchmarks/helper.py": "def f():\n    from mtbayes.room import g\n    return g\n",
    "src/mtbayes/__init__.py": "if TYPE_CHECKING:\n    from mtbayes.fits import Fit\n"
    "    from mtbayes.other import Other\n",
    "src/mtbayes/fits.py": '"""Words."""\nclass Fit:\n    """More."""\n    size = 1\n',
    "src/mtbayes/other.py": "from mtbayes.fits import Fit\n",
    "src/mtbayes/room/__init__.py": "from mtbayes.room.inner import g\nimport mtbayes.other\n",
    "src/mtbayes/room/inner.py": "import mtbayes.deep\ndef g():\n    return 1\n",
    "src/mtbayes/deep.py": "depth = 1\n",
}
ROOTS = ["benchmarks/run.py"]


def digest(**changed):
    """With some files' text replaced, by their names."""
    sources = {
        path: next((new for name, new in changed.items() if path.endswith(f"/{name}.py")), text)
        for path, text in SOURCES.items()
    }
    return evidence.Code(sources).digest(ROOTS)


def test_a_program_depends_on_what_it_imports_and_on_nothing_else():
    assert evidence.Code(SOURCES).behind(ROOTS) == [
        "benchmarks/helper.py", "benchmarks/run.py", "src/mtbayes/deep.py", "src/mtbayes/fits.py",
        "src/mtbayes/room/inner.py",
    ]  # fmt: skip


def test_code_makes_numbers_old_and_words_do_not():
    same = digest()
    assert digest(deep="depth = 2\n") != same
    assert digest(fits="class Fit:\n    size = 2\n") != same
    assert digest(other="anything = 3\n") == same
    words = (
        '"""Other words."""\n\n\nclass Fit:  # a comment\n    """Still more."""\n\n    size = 1\n'
    )
    assert digest(fits=words) == same


def test_a_false_claim_is_seen():
    listed = [one | {"digest": "0" * 16} for one in ENTRIES[:1]]
    true = evidence.states(listed, evidence.Code(evidence.working()))
    assert list(true.values()) == [evidence.OLD]
    text = evidence.page(listed, {listed[0]["name"]: evidence.FRESH})
    assert evidence.claimed(text, listed) != true
