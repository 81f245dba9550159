"""Who is let in, and what they may ask for."""

import http.client
import json
from urllib.parse import quote

import pytest

from mtbayes.reviewing import Review

from .conftest import Running, write_rows

PIXEL = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture
def page(review, tmp_path):
    running = Running(review, tmp_path / "clean.csv")
    yield running
    running.stop()


def ask(page, path="", *, method="GET", body=None, token=None, **headers):
    """Status, headers and content of an answer."""
    link = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body)
    link.request(method, f"/{page.token if token is None else token}/{path}", data, named)
    answer = link.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    link.close()
    return found


def test_the_page_is_for_those_who_have_its_address(page):
    status, headers, content = ask(page)
    assert status == 200
    assert b"<title>Review</title>" in content
    rules = headers["content-security-policy"]
    assert "default-src 'none'" in rules
    assert "unsafe" not in rules
    assert "frame-ancestors 'none'" in rules
    assert headers["referrer-policy"] == "no-referrer"
    for token in ("", "wrong", page.token[:-1], page.token + "x", "é"):
        link = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
        link.putrequest("GET", f"/{quote(token)}/api/state")
        link.endheaders()
        assert link.getresponse().status == 403
        link.close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "[::1]:1"])
def test_other_names_of_this_machine_are_refused(page, host):
    """As when a name of another's is made to point to 127.0.0.1."""
    assert ask(page, "api/state", Host=host)[0] == 403
    assert ask(page, "api/state", Host=f"{host}:{page.port}")[0] in (200, 403)
    assert ask(page, "api/state", Host=f"evil.example:{page.port}")[0] == 403
    assert ask(page, "api/state", Host=f"localhost:{page.port}")[0] == 200


def test_other_pages_are_refused(page, review):
    own = f"http://127.0.0.1:{page.port}"
    asked = {"method": "POST", "body": {"row": 0, "action": "keep"}}
    kind = {"Content_Type": "application/json"}
    for origin in ("https://evil.example", "null", f"http://evil.example:{page.port}", own[:-1]):
        assert ask(page, "api/decide", **asked, **kind, Origin=origin)[0] == 403
    assert ask(page, "api/decide", **asked, **kind, Sec_Fetch_Site="cross-site")[0] == 403
    for site in ("cross-site", "same-site"):  # another port of this machine is another's too
        assert ask(page, "image/0", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0] == 403
    assert ask(page, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200
    assert ask(page, "api/decide", **asked, Content_Type="text/plain")[0] == 415
    assert review.decided == {}
    assert ask(page, "api/decide", **asked, **kind, Origin=own)[0] == 200
    assert review.state(0) == "keep"


@pytest.mark.parametrize(
    "body",
    [{}, {"row": -1, "action": "keep"}, {"row": "0", "action": "keep"}, {"row": 0, "action": "x"},
     {"row": 0, "action": "correct", "value": 3}, [1]],
)  # fmt: skip
def test_what_makes_no_sense_is_told(page, review, body):
    status, _, content = ask(
        page, "api/decide", method="POST", body=body, Content_Type="application/json"
    )
    assert status == 400
    assert json.loads(content)["error"]
    assert review.decided == {}


def test_what_is_no_request_of_a_page_is_refused(page):
    for method, path in (("OPTIONS", "*"), ("GET", "/"), ("GET", "//")):
        link = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
        link.request(method, path)
        assert link.getresponse().status == 403
        link.close()
    link = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    kind = {"Content-Type": "application/json"}
    link.request("POST", f"/{page.token}/api/decide", "{no", kind)
    assert link.getresponse().status == 400
    link.close()


def test_only_what_there_is_can_be_read(page):
    assert ask(page, "api/row/20")[0] == 400
    assert ask(page, "api/rows?state=burnt")[0] == 400
    assert ask(page, "image/0")[0] == 404
    for path in ("server.py", "../server.py", "static/../../server.py", "%2e%2e/server.py"):
        assert ask(page, path)[0] in (403, 404)


def test_a_row_in_full(page, review):
    found = json.loads(ask(page, "api/row/0")[2])
    assert (found["given"], found["suggested"], found["same"]) == ("low", "high", False)
    assert [column["name"] for column in found["columns"]] == ["x", "words"]
    assert [group["value"] for group in found["near"]] == ["low", "high"]
    near = [one["place"] for one in found["near"][1]["rows"]]
    assert all(review.rows.y[place - 1] == "high" for place in near)
    assert len(near) == 3
    assert found["previous"] is None
    assert found["next"] == 1
    listed = json.loads(ask(page, "api/rows?text=high&state=open&count=3")[2])
    assert listed["total"] > 3
    assert len(listed["rows"]) == 3


def test_images_come_from_their_folder_alone(tmp_path):
    folder = tmp_path / "pictures"
    (folder / "sub").mkdir(parents=True)
    for name in ("pictures/one.png", "pictures/sub/two.png", "secret.png"):
        (tmp_path / name).write_bytes(PIXEL)
    (folder / "page.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    cells = ["one.png", "sub/two.png", "../secret.png", str(tmp_path / "secret.png"), "link.png",
             "page.svg", "none.png", "sub", "sub/../../secret.png", ""]  # fmt: skip
    rows = [[cell, i, "ab"[i % 2]] for i, cell in enumerate(cells * 3)]
    path = write_rows(tmp_path / "data.csv", ["file", "x", "label"], rows)
    model = write_rows(
        tmp_path / "audit.csv",
        ["rank", "row", "probability", "given", "suggested", "why"],
        [[i, i, 0.1, "a", "b", "so"] for i in range(1, 31)],
    )
    review = Review(path, "label", model=model, every=0)
    running = Running(review, tmp_path / "clean.csv", str(folder))
    try:
        found = [ask(running, f"image/{row}") for row in range(10)]
        assert [status for status, *_ in found] == [200, 200] + [404] * 8
        assert found[0][2] == PIXEL
        assert found[0][1]["content-type"] == "image/png"
        assert b"secret" not in found[9][2]
    finally:
        running.stop()
        review.close()
