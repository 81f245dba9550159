"""What a person has decided about rows: a file that only grows, one decision a line.

Every line is on the disk before the next is asked for. To undo appends too, so that nothing that
was once decided is lost. Rows are known by their content (`contents.keys`).
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from mtbayes.data.safe import plain_text, safe_text
from mtbayes.errors import InvalidInput

if sys.platform != "win32":  # where two servers at once are not told of each other
    import fcntl

ACTIONS = ["correct", "keep", "drop", "skip"]
_VERSION = 1


class Decision(NamedTuple):
    """What was decided about a row.

    key: of the row, by its content; row: where it was in the file, from 1
    action: one of `ACTIONS`; given: the target in the file; value: what it is to be
    """

    key: str
    row: int
    action: str
    given: str
    value: str
    time: str = ""

    @property
    def certain(self) -> bool:
        """Whether the target is known now."""
        return self.action in ("correct", "keep")

    @property
    def wrong(self) -> bool:
        """Whether the row was found to be wrong."""
        return self.action in ("correct", "drop")


class Stack:
    """Decisions in the order they were made; the last about a row holds."""

    def __init__(self) -> None:
        self.made: list[Decision] = []
        self._about: dict[str, list[Decision]] = {}

    def __getitem__(self, key: str) -> Decision | None:
        about = self._about.get(key)
        return about[-1] if about else None

    def push(self, decision: Decision) -> None:
        """One more."""
        self.made.append(decision)
        self._about.setdefault(decision.key, []).append(decision)

    def pop(self, key: str) -> Decision | None:
        """The last one about a row, which holds no more; None if there is none."""
        about = self._about.get(key)
        if not about:
            return None
        last = about.pop()
        place = len(self.made) - 1
        while self.made[place] is not last:
            place -= 1
        return self.made.pop(place)

    def holding(self) -> dict[str, Decision]:
        """By row, in the order in which each was last decided."""
        found: dict[str, Decision] = {}
        for decision in self.made:
            found.pop(decision.key, None)
            found[decision.key] = decision
        return found


class Log:
    """The file of a review, read and then held open; another that holds it is refused."""

    def __init__(self, path: Path, target: str) -> None:
        self.path, self.stack, self.exported = path, Stack(), set[str]()
        self._file = path.open("ab")
        try:
            self._lock()
            lines = path.read_bytes()
            for record in _records(path):
                self._follow(record, target)
            if lines and not lines.endswith(b"\n"):  # a line that was cut off by a power cut
                self._file.write(b"\n")
            if not lines:
                self._write({"review": _VERSION, "target": target})
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(
                f"{self.path} must belong to one review at a time, but another is running. Use its "
                "page, which may be open in several tabs, or stop it first."
            ) from None

    def _follow(self, record: dict[str, Any], target: str) -> None:
        if "review" in record:
            _check_header(self.path, record, target)
        elif "exported" in record:
            self.exported.add(str(record["exported"]))
        elif "undo" in record:
            self.stack.pop(str(record["undo"]))
        else:
            self.stack.push(_decision(self.path, record))

    def decide(self, decision: Decision) -> None:
        """Keep a decision; when this returns it is on the disk."""
        decision = decision._replace(time=datetime.now(UTC).isoformat(timespec="seconds"))
        self._write(decision._asdict())
        self.stack.push(decision)

    def undo(self, known: Container[str] | None = None) -> Decision | None:
        """Take back the last decision; None if there is none.

        known: rows that are there, if not all are; decisions about others stay
        """
        made = reversed(self.stack.made)
        last = next((d for d in made if known is None or d.key in known), None)
        if last is None:
            return None
        self._write({"undo": last.key})
        return self.stack.pop(last.key)

    def export(self, path: Path) -> None:
        """Remember a file that was written, which may be written again."""
        name = str(path.absolute())
        if name not in self.exported:
            self._write({"exported": name})
            self.exported.add(name)

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def read_decisions(path: Path) -> tuple[str, dict[str, Decision]]:
    """The target and the decisions by row, of a review's file or of a CSV that it wrote."""
    if not path.is_file():
        raise InvalidInput(f"DECISIONS must be a file that exists, got {path}. Look for its name.")
    if path.suffix.lower() == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            records: list[dict[str, Any]] = [_plain(record) for record in csv.DictReader(file)]
        target = [record.pop("target", None) for record in records][:1]
    else:
        records = list(_records(path))
        target = [record.get("target") for record in records[:1]]
        records = records[1:]
    if not target or not isinstance(target[0], str):
        _refuse(path, "it does not say which target they are about")
    stack = Stack()
    for record in records:
        if "undo" in record:
            stack.pop(str(record["undo"]))
        elif "exported" not in record:
            stack.push(_decision(path, record))
    return target[0], stack.holding()


def exported(path: Path) -> set[str]:
    """Files that a review has written, by its log; none where there is no log yet."""
    records = _records(path) if path.is_file() else iter(())
    return {str(record["exported"]) for record in records if "exported" in record}


def write_csv(target: str, decisions: Iterable[Decision], path: Path) -> None:
    """Decisions about a target as a table, which a spreadsheet may open: no cell is a formula."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*Decision.__annotations__, "target"])
        writer.writeheader()
        for decision in decisions:
            cells = decision._asdict() | {"target": target}
            writer.writerow({name: safe_text(str(cell)) for name, cell in cells.items()})


def _plain(record: dict[Any, Any]) -> dict[Any, Any]:
    """A row of that table as it was before formulas were marked."""
    return {k: plain_text(v) if isinstance(v, str) else v for k, v in record.items()}


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; a line that was not written whole was never decided."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            record = json.loads(line) if line.strip() else None
        except ValueError:
            record = None
            if number == 1:
                _refuse(path, "its first line is no JSON")
        if isinstance(record, dict):
            yield record


def _decision(path: Path, record: dict[str, Any]) -> Decision:
    try:
        found = Decision(**{**record, "row": int(record["row"])})
    except (TypeError, KeyError, ValueError):
        found = None
    if found is None or found.action not in ACTIONS:
        _refuse(path, f"it holds {json.dumps(record, ensure_ascii=False)[:100]}")
    return found


def _check_header(path: Path, record: dict[str, Any], target: str) -> None:
    if record["review"] != _VERSION:
        raise InvalidInput(
            f"{path} has version {record['review']!r} of a review, and this mtbayes reads "
            f"{_VERSION}. Update mtbayes."
        )
    if record.get("target") != target:
        raise InvalidInput(
            f"{path} must hold decisions about {target!r}, got some about "
            f"{record.get('target')!r}. Review that column, or move the file away."
        )


def _refuse(path: Path, why: str) -> NoReturn:
    raise InvalidInput(
        f"{path} must hold decisions of `mtbayes review`, but {why}. Look whether this is the file "
        "you meant."
    )
