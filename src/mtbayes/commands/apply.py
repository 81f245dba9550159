"""`mtbayes apply`: what was decided in a review, put into a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import new_file
from mtbayes.commands.screen import Screen, usage


def apply(
    decisions: Annotated[
        Path,
        typer.Argument(metavar="DECISIONS", help="DATA.review.jsonl, or a review's decisions."),
    ],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The file that was reviewed.")],
    out: Annotated[Path, options.out("The clean file, of the kind that DATA is.")],
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write a file with the decisions of a review: targets corrected, dropped rows gone.

    All other bytes stay as they are. Rows are known by their content, in whatever order they are
    now.

    Example: mtbayes apply houses.csv.review.jsonl houses.csv -o clean.csv
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        from mtbayes.commands.learning import opened
        from mtbayes.reviewing import applying
        from mtbayes.reviewing.decisions import ACTIONS, read_decisions

        path = new_file(out, force)
        target, made = read_decisions(decisions)
        source = opened(screen, data)
        usage(applying.check_out, data, path)
        done, gone = applying.apply(source, target, made, path)
        if gone:
            screen.note(applying.missing(data, gone, len(made)))
        found = Counter(decision.action for decision in done.values())
        counts = {action: found[action] for action in ACTIONS}
        screen.line(
            f"{counts['correct']} values of {target!r} corrected, {counts['drop']} rows dropped, "
            f"{counts['keep']} kept as they were, {counts['skip']} skipped: {path}"
        )
        screen.done({"out": str(path), "target": target, **counts, "without a row": len(gone)})
