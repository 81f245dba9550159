"""How the house is built, counted over its source."""

import ast
from pathlib import Path

import mtbayes

ROOT = Path(mtbayes.__file__).parent
# Of a NamedTuple, whose makers had no other names left.
ALLOWED = {"_replace", "_asdict"}


def trees():
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_no_module_reaches_into_another_object():
    found = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and node.attr not in ALLOWED
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]
    assert found == []


def test_nothing_is_copied_to_be_changed():
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("copy.copy", "copy")
    ]
    assert found == []


def test_the_choice_knows_no_learner_and_no_law_by_name():
    names = {"NetworkLearner", "CloudLearner", "WrongLabels", "WrongTargets", "WrongPoints"}
    for name in ("fitting/choice.py", "fitting/fitted.py", "fitting/__init__.py"):
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not used & names
        assert "isinstance" not in used


def test_every_public_name_can_be_had_from_the_top():
    assert sorted(mtbayes.__all__) == mtbayes.__all__
    for name in mtbayes.__all__:
        assert getattr(mtbayes, name).__name__ == name
    assert not [n for n in mtbayes.__all__ if (ROOT / f"{n}.py").exists() or (ROOT / n).is_dir()]


def test_type_checkers_see_every_public_name():
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (told,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = [name.name for node in told.body for name in node.names]
    assert sorted(seen) == mtbayes.__all__


def test_tests_mirror_the_source():
    """Every folder of tests is a room of the source."""
    here = Path(__file__).parent
    folders = {path.name for path in here.iterdir() if path.is_dir()} - {"docs", "__pycache__"}
    assert not {name for name in folders if not (ROOT / name).is_dir()}
