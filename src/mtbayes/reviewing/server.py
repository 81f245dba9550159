"""The page of a review, served on this machine alone to whoever has the token in its address.

A page of another site must neither read nor change anything here, even where its name is made to
point to this machine: so the name that was asked for, where a request comes from and the token are
all looked at before anything else. Text goes to the page as JSON and is never made into HTML.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.reviewing.pictures import Outside
from mtbayes.reviewing.views import STATES, Views

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")
_MOST = 500  # rows of the list at once
_LARGEST = 10_000  # bytes of what a page sends
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets through requests that a page of this server makes, and none else."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token = app, token.encode()
        self.hosts = {f"{name}:{port}".encode() for name in _NAMES}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """An ASGI application around another."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refused = self._refused(scope)
        if refused is None:

            async def answer(message: Any) -> None:
                if message["type"] == "http.response.start":
                    own = [(k.lower().encode(), v.encode()) for k, v in _HEADERS.items()]
                    message = {**message, "headers": [*message["headers"], *own]}
                await send(message)

            await self.app(scope, receive, answer)
            return
        await PlainTextResponse(refused, 403, _HEADERS)(scope, receive, send)

    def _refused(self, scope: Any) -> str | None:
        """Why a request is refused; None if it is not."""
        headers = dict(scope["headers"])
        if scope["type"] != "http" or headers.get(b"host") not in self.hosts:
            return "This server answers to 127.0.0.1 alone."
        if headers.get(b"origin", b"") not in {b"", *self.origins}:
            return "This server answers to its own page alone."
        # Whoever has the address may follow it as a link, from a terminal in a page for instance.
        link = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        own = headers.get(b"sec-fetch-site", b"none") in (b"same-origin", b"none")
        if not own and not link:
            return "This server answers to its own page alone."
        token = scope["path"].removeprefix("/").split("/")[0].encode("utf-8", "replace")
        if not secrets.compare_digest(token, self.token):
            return "The address must be the whole one that `mtbayes review` has printed."
        return None


class Pages:
    """What the page asks for; out: the clean file that it may have written."""

    def __init__(self, views: Views, out: Path) -> None:
        self.views, self.review, self.out = views, views.review, out

    def routes(self) -> list[Route]:
        """Addresses below the token."""
        return [
            Route("/", _static("index.html")),
            *(Route(f"/{name}", _static(name)) for name in _assets()),
            Route("/api/state", self._answer(self.state)),
            Route("/api/rows", self._answer(self.rows)),
            Route("/api/row/{row:int}", self._answer(self.row)),
            Route("/image/{row:int}", self._answer(self.image)),
            Route("/api/decide", self._answer(self.decide), methods=["POST"]),
            Route("/api/undo", self._answer(self.undo), methods=["POST"]),
            Route("/api/refit", self._answer(self.refit), methods=["POST"]),
            Route("/api/export", self._answer(self.export), methods=["POST"]),
        ]

    def _answer(self, make: Callable[..., Any]) -> Callable[[Request], Awaitable[Response]]:
        """A route: its work is done in a thread, and what is refused is told."""

        async def answer(request: Request) -> Response:
            body = b""
            if request.method == "POST":
                body = await request.body()
                if request.headers.get("content-type") != "application/json":
                    return JSONResponse({"error": "what is sent must be JSON"}, 415)
                if len(body) > _LARGEST:
                    return JSONResponse({"error": "what is sent must be short"}, 413)
            try:
                sent = json.loads(body) if body else {}
                made = await run_in_threadpool(make, request, sent)
            except Outside as error:
                return JSONResponse({"error": str(error)}, 404)
            except (InvalidInput, KeyError, TypeError, ValueError, IndexError) as error:
                return JSONResponse({"error": str(error)}, 400)
            except OSError as error:
                return JSONResponse({"error": f"cannot write: {error.strerror}"}, 500)
            return made if isinstance(made, Response) else JSONResponse(made)

        return answer

    def state(self, request: Request, _: Any) -> Any:
        """The review as a whole; nothing where the page knows this version."""
        if request.query_params.get("since") == str(self.review.version):
            return Response(status_code=204)
        return self.views.overview()

    def rows(self, request: Request, _: Any) -> Any:
        """A stretch of the list."""
        asked = request.query_params
        state = _check.known("state", asked.get("state", "all"), STATES)
        text = asked.get("text", "")[:200]
        found = self.views.listed(
            max(0, int(asked.get("begin", 0))), min(_MOST, int(asked.get("count", 50))), state, text
        )
        if "row" in asked:
            found["at"] = self.views.place(int(asked["row"]), state, text)
        return found

    def row(self, request: Request, _: Any) -> Any:
        """One row."""
        return self.views.row(self._known(request.path_params["row"]))

    def _known(self, row: Any) -> int:
        if not isinstance(row, int) or not 0 <= row < len(self.review):
            raise InvalidInput(f"row must be one of 0 to {len(self.review) - 1}, got {row!r}.")
        return row

    def image(self, request: Request, _: Any) -> Any:
        """The image of a row."""
        if self.views.pictures is None:
            raise Outside("there are no images.")
        data, kind = self.views.pictures.image(self._known(request.path_params["row"]))
        return Response(data, media_type=kind)

    def decide(self, _: Request, sent: Any) -> Any:
        """A decision; the answer has the row that comes next."""
        row = self._known(sent["row"])
        value = sent.get("value")
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"value must be text, got {value!r}.")
        with self.review.lock:
            after = self.review.following(row, ahead=bool(sent.get("ahead")))
            decision = self.review.decide(row, str(sent["action"]), value)
            if after is None and decision.action == "skip":
                after = row
            return {"next": after, "made": decision._asdict(), "state": self.views.overview()}

    def undo(self, _: Request, sent: Any) -> Any:
        """The last decision taken back; the answer has its row."""
        with self.review.lock:
            return {"row": self.review.undo(), "state": self.views.overview()}

    def refit(self, _: Request, sent: Any) -> Any:
        """A refit in the background."""
        self.review.refit(wait=False)
        return {"state": self.views.overview()}

    def export(self, _: Request, sent: Any) -> Any:
        """The clean file, the decisions and a summary."""
        made = self.review.export(self.out)
        return {"files": [str(path) for path in made], "summary": self.review.summary()}


def _assets() -> list[str]:
    """Files of the page."""
    folder = files("mtbayes.reviewing") / "static"
    return sorted(file.name for file in folder.iterdir() if Path(file.name).suffix in _KINDS)


def _static(name: str) -> Callable[[Request], Awaitable[Response]]:
    content = (files("mtbayes.reviewing") / "static" / name).read_bytes()
    kind = _KINDS[Path(name).suffix]

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


def application(views: Views, out: Path, token: str, port: int) -> Guard:
    """The server as an ASGI application."""

    async def slash(_: Request) -> Response:
        return RedirectResponse(f"/{token}/")

    routes = [Route(f"/{token}", slash), Mount(f"/{token}", routes=Pages(views, out).routes())]
    return Guard(Starlette(routes=routes), token, port)


def bind(port: int) -> socket.socket:
    """A port of this machine alone; 0 takes a free one."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
        found.listen()  # from now on it is taken
    except OSError as error:
        found.close()
        raise InvalidInput(
            f"port must be free on this machine, got {port} ({error.strerror}). Leave it out."
        ) from None
    return found


class Server:
    """A server of a review, bound to an address."""

    def __init__(self, views: Views, out: Path, bound: socket.socket | None = None) -> None:
        self.socket = bind(0) if bound is None else bound
        token, self.port = secrets.token_urlsafe(24), self.socket.getsockname()[1]
        self.address = f"http://{HOST}:{self.port}/{token}/"
        app = application(views, out, token, self.port)
        self.server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, log_level="warning", timeout_graceful_shutdown=2)
        )

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self.server.run(sockets=[self.socket])
