"""`make evidence`: which numbers the documents show, by which command, and on which code.

`docs/evidence.json` lists them: each entry has its pages and saved files, the command, the `code`
that the command starts from, and of the last measurement the commit, its date and a digest of that
code with all that it imports. This writes `docs/evidence.md` from it and ends with 1 if any is
older than the code. After measuring on a commit: `python tools/evidence.py --record NAME ...`.

A digest is of syntax trees without docstrings: words and layout do not make numbers old.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "docs" / "evidence.json"
PAGE = ROOT / "docs" / "evidence.md"
FOLDERS = ("src/mtbayes", "benchmarks")
TOP = "src/mtbayes/__init__.py"  # hands names on, and has the version, which measures nothing
FRESH, OLD = "fresh", "older than the code"
Sources = dict[str, str]  # text by path, such as src/mtbayes/types.py


def working() -> Sources:
    """The code as it stands."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def at(commit: str) -> Sources:
    """The code of a commit."""
    packed = subprocess.run(
        ["git", "archive", commit, *FOLDERS], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        files = {m.name: tar.extractfile(m) for m in tar if m.name.endswith(".py")}
        return {name: file.read().decode("utf-8") for name, file in files.items() if file}


class Code:
    """Modules, what each imports, and digests of what a program depends on."""

    def __init__(self, sources: Sources) -> None:
        self.trees = {path: ast.parse(text) for path, text in sources.items()}
        self._imports: dict[str, set[str]] = {}
        self._marks: dict[str, str] = {}

    def module(self, name: str) -> str | None:
        """The path of a dotted name, of ours or of a script beside it."""
        below = "src/" + name.replace(".", "/")
        choices = (f"{below}.py", f"{below}/__init__.py", f"benchmarks/{name}.py")
        return next((path for path in choices if path in self.trees), None)

    def imports(self, path: str) -> set[str]:
        """Paths of the modules that one imports, anywhere in it."""
        if path not in self._imports:
            found = set()
            for node in _running(self.trees[path]):
                if isinstance(node, ast.Import):
                    found |= {self.module(one.name) for one in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    for one in node.names:
                        found |= self.of(node.module, one.name)
            self._imports[path] = {one for one in found if one}
        return self._imports[path]

    def of(self, home: str, name: str) -> set[str | None]:
        """Where a name is from: a module, or what a package hands on; else all of its home."""
        inner, path = self.module(f"{home}.{name}"), self.module(home)
        if inner or path is None:
            return {inner}
        if path.endswith("__init__.py"):
            for node in ast.walk(self.trees[path]):
                if not isinstance(node, ast.ImportFrom) or node.module in (None, home):
                    continue
                if any(name == (one.asname or one.name) for one in node.names):
                    return self.of(str(node.module), name)
        return {path} - {TOP}

    def behind(self, roots: list[str]) -> list[str]:
        """All modules that programs depend on, themselves included, in order."""
        found: set[str] = set()
        ahead = [path for path in roots if path in self.trees]
        while ahead:
            path = ahead.pop()
            if path not in found:
                found.add(path)
                ahead += self.imports(path)
        return sorted(found)

    def digest(self, roots: list[str]) -> str:
        """A short mark of the code behind programs, without its words."""
        whole = hashlib.sha256()
        for path in self.behind(roots):
            whole.update(f"{path} {self.mark(path)}\n".encode())
        return whole.hexdigest()[:16]

    def mark(self, path: str) -> str:
        """Of one module."""
        if path not in self._marks:
            wordless = ast.dump(_without_words(self.trees[path])).encode()
            self._marks[path] = hashlib.sha256(wordless).hexdigest()
        return self._marks[path]


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker reads."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _running(child)


def _without_words(tree: ast.Module) -> ast.Module:
    """The tree, its docstrings taken away; they import nothing."""
    for node in ast.walk(tree):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return tree


def entries() -> list[dict[str, Any]]:
    """The manifest."""
    found: list[dict[str, Any]] = json.loads(MANIFEST.read_text("utf-8"))
    return found


def states(listed: list[dict[str, Any]], code: Code) -> dict[str, str]:
    """Of each entry whether its numbers were measured on this code."""
    return {
        one["name"]: FRESH if code.digest(one["code"]) == one["digest"] else OLD for one in listed
    }


HEAD = """# Evidence: what was measured when
Here is each command whose numbers these pages show, the commit whose code it measured, and whether
that is still the code that stands here. **Fresh**: nothing that the command depends on has changed
since. **Older than the code**: something has, perhaps something that does not matter; the numbers
are those of the commit named.

Written by `make evidence` from `evidence.json`, which also says which files of the code each
command starts from. A test fails where this page calls something fresh that is not, and where a
table of a page is not that of the saved file. Words, comments and layout do not count as changes.
Where parts of a file were measured at different times, the commit is that of the oldest. README
shows the tables, images and verdicts of the pages below.

Not in the list are trials: numbers that tell why something was decided as it was, in
[design](design.md), and where [modes](modes.md), [text](text.md), [the mathematics](mathematics.md)
and the pages on choosing and performance speak of what was tried, of other splits or of earlier
code. They were measured once, by scripts that were not kept, and say nothing of the code that
stands here.

| what | shown in | command | commit | date | numbers are |
|---|---|---|---|---|---|
"""


def page(listed: list[dict[str, Any]], state: dict[str, str]) -> str:
    """The document, for the states given."""
    lines = []
    for one in listed:
        pages = ", ".join(f"[{Path(path).stem}]({path})" for path in one["pages"])
        shown = f"**{FRESH}**" if state[one["name"]] == FRESH else OLD
        lines.append(
            f"| {one['about']} | {pages} | `{one['command']}` | {one['commit']} | {one['date']} "
            f"| {shown} |\n"
        )
    return HEAD + "".join(lines)


def claimed(text: str, listed: list[dict[str, Any]]) -> dict[str, str]:
    """What a document says of each entry, line by line."""
    said = re.findall(r"^\|.*\| (\*\*fresh\*\*|older than the code) \|$", text, re.MULTILINE)
    names = [one["name"] for one in listed]
    return {n: FRESH if s == f"**{FRESH}**" else OLD for n, s in zip(names, said, strict=True)}


def record(names: list[str], commit: str) -> None:
    """Note that entries were measured on a commit."""
    listed = entries()
    unknown = set(names) - {one["name"] for one in listed}
    if unknown:
        known = ", ".join(one["name"] for one in listed)
        sys.exit(f"--record must name entries, got {', '.join(sorted(unknown))}. Known: {known}")
    if commit == "HEAD" and _git("status", "--porcelain", "--", *FOLDERS):
        sys.exit("the code has changes that are in no commit: commit them, then measure and record")
    code = Code(at(commit))
    named = {
        "commit": _git("rev-parse", "--short=7", commit),
        "date": _git("log", "-1", "--format=%cs", commit),
    }
    for one in listed:
        if one["name"] in names:
            one |= named | {"digest": code.digest(one["code"])}
    MANIFEST.write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Record if asked to, write the page, and say what is old."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--commit", default="HEAD", help="the one that was measured")
    options = parser.parse_args()
    if options.record:
        record(options.record, options.commit)
    listed = entries()
    state = states(listed, Code(working()))
    PAGE.write_text(page(listed, state), "utf-8")
    old = [one for one in listed if state[one["name"]] == OLD]
    for one in old:
        print(f"{one['name']}: measured at {one['commit']} ({one['date']}), older than the code")
    print(f"{len(listed) - len(old)} of {len(listed)} fresh; written: {PAGE.relative_to(ROOT)}")
    sys.exit(1 if old else 0)


if __name__ == "__main__":
    main()
