"""`mtbayes explore`: the method in a page in which one drags points."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import new_file
from mtbayes.commands.screen import Screen


def explore(
    out: Annotated[
        Path | None, options.out("The page; a new folder for temporary files if none.")
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Write the page and open nothing.")
    ] = False,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Drag points and see what m, t, beta, t_p and the prior do.

    One HTML page that needs neither network nor server: the toy example of the paper, solved
    exactly while you drag, and two classes in the plane with wrong labels.

    Example: mtbayes explore -o explore.html
    """
    with Screen(quiet=quiet, as_json=as_json, debug=False) as screen:
        from mtbayes._files import atomic
        from mtbayes.exploring import page

        path = new_file(out, force) if out else Path(mkdtemp(prefix="mtbayes-")) / "explore.html"
        with atomic(path) as temporary:
            temporary.write_text(page(), encoding="utf-8")
        screen.line(f"{path}")
        if not (no_browser or as_json):
            typer.launch(path.absolute().as_uri())
        screen.done({"out": str(path)})
