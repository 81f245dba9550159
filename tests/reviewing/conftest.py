"""Files to review, what an audit says of them, and a server; and a browser with real keys."""

import base64
import contextlib
import csv
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request

import numpy as np
import pytest

from mtbayes.reviewing import Review

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
BUSY = "return document.getElementById('row').getAttribute('aria-busy') === 'true'"
LABELS = ["low", "high", "<img src=x onerror=hit()>"]


def write_rows(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def table(path, n, labels=LABELS):
    """A file of n rows with classes in turn, and the audit by which the first rows are worst."""
    rng = np.random.default_rng(0)
    rows = [
        [f"{rng.normal() + 3 * (i % len(labels)):.3f}", f"says, {i}", labels[i % len(labels)]]
        for i in range(n)
    ]
    write_rows(path, ["x", "words", "label"], rows)
    audit = path.with_name(f"{path.stem}-audit.csv")
    said = [
        [i + 1, i + 1, f"{0.95 if i < n // 10 else 0.001:.6f}", row[-1],
         labels[(i + 1) % len(labels)], "so it is", *row]
        for i, row in enumerate(rows)
    ]  # fmt: skip
    header = ["rank", "row", "probability", "given", "suggested", "why", "x", "words", "label.1"]
    write_rows(audit, header, said)
    return audit


@pytest.fixture
def review(tmp_path):
    """A review of 20 rows that an audit has ranked; nothing is fitted."""
    path = tmp_path / "data.csv"
    found = Review(path, "label", model=table(path, 20), every=0)
    yield found
    found.close()


class Running:
    """A server in a thread."""

    def __init__(self, review, out, images=None):
        from mtbayes.reviewing.server import Server
        from mtbayes.reviewing.views import Views

        self.server = Server(Views(review, images), out)
        self.address, self.port = self.server.address, self.server.port
        self.token = self.address.rstrip("/").rsplit("/", 1)[1]
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        until(lambda: self.server.server.started)

    def stop(self):
        self.server.server.should_exit = True
        self.thread.join()


def until(done, seconds=60):
    """Wait for something to happen; a test that waits in vain fails."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


class Browser:
    """Chromium by the W3C's protocol: pages, real keys, and what is on the screen."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([DRIVER, f"--port={port}"], **quiet)
        self.base = f"http://127.0.0.1:{port}"
        until(self._answers)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", f"--user-data-dir={folder}",
                   "--window-size=1280,900"]  # fmt: skip
        chrome = {"binary": CHROMIUM, "args": options}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self.call("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{made['sessionId']}"

    def _answers(self):
        try:
            return self.call("/status") is not None
        except OSError:
            return False

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, address):
        self.call("/url", {"url": address})
        until(lambda: self.run("return document.body?.dataset.ready === 'yes'"))

    def run(self, script):
        return self.call("/execute/sync", {"script": script, "args": []})

    def text(self, place):
        return self.run(f"return document.querySelector({place!r})?.textContent")

    def press(self, *keys):
        """Keys one after another; the page has done its work when this returns."""
        for key in keys:
            steps = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
            self.call("/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})
            until(lambda: not self.run(BUSY))

    def row(self):
        """The row of the file that is shown."""
        return int(self.text("#heading").split()[1])

    def emulate(self, command, **values):
        self.call("/goog/cdp/execute", {"cmd": f"Emulation.{command}", "params": values})

    def errors(self):
        return [one["message"] for one in self.call("/se/log", {"type": "browser"})]

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("/screenshot")))

    def quit(self):
        with contextlib.suppress(OSError):
            self.call("", method="DELETE")
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs Chromium and its driver")
    found = Browser(tmp_path_factory.mktemp("user"))
    yield found
    found.quit()
