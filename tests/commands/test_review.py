"""`mtbayes review` and `apply`: what they refuse before any work, and what they say."""

import json
import sys

import pytest

from mtbayes.reviewing.decisions import Decision, Log
from mtbayes.reviewing.server import Server, bind


@pytest.fixture
def small(tmp_path):
    (tmp_path / "data.csv").write_text(
        "x,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(30))
    )
    lines = [f"{i},{i},{0.9 if i == 1 else 0.01},a,b,so" for i in range(1, 31)]
    header = "rank,row,probability,given,suggested,why"
    (tmp_path / "audit.csv").write_text("\n".join([header, *lines]) + "\n")
    return tmp_path


def test_served_until_stopped_and_then_written(case, small, monkeypatch):
    def decide(self):
        self.socket.close()
        if not made.decided:
            made.decide(0, "correct")
        raise KeyboardInterrupt

    from mtbayes.reviewing import session

    made = None
    real = session.Review.__init__

    def keep(self, *arguments, **options):
        nonlocal made
        real(self, *arguments, **options)
        made = self

    monkeypatch.setattr(session.Review, "__init__", keep)
    monkeypatch.setattr(Server, "run", decide)
    arguments = ["review", "data.csv", "--target", "label", "--model", "audit.csv", "--no-browser"]
    result = case.run(*arguments, folder=small)
    assert result.exit_code == 0, result.output
    assert "http://127.0.0.1:" in result.output
    assert "Written: data-clean.csv" in result.output
    assert (small / "data-clean.csv").read_text().splitlines()[1] == "0,b"
    # What it has written itself it may write again, and nothing else.
    assert "Going on after 1 decisions" in case.run(*arguments, folder=small).output
    (small / "third-summary.md").write_text("mine")
    result = case.run(*arguments, "-o", "third.csv", folder=small)
    assert result.exit_code == 2
    assert "third-summary.md exists" in result.output
    (small / "other.csv").write_text("mine")
    result = case.run(*arguments, "-o", "other.csv", folder=small)
    assert result.exit_code == 2
    assert "other.csv exists" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "lable"], "Is 'label' meant?"),
        (["--target", "label", "-o", "clean.parquet"], "must be text"),
        (["--target", "label", "--task", "words"], "task must be"),
        (["--target", "label", "--t", "2"], "t must"),
        (["--target", "label", "-o", "data.csv", "--force"], "must be another than data.csv"),
        (["--target", "label", "--images", "nowhere"], "images must be a column"),
        (["--target", "label", "--model", "audit.csv", "--images", "nowhere"], "images must be"),
        (["--target", "label", "--model", "data.csv"], "do not begin with rank"),
    ],
)
def test_refused(case, small, options, message):
    result = case.run("review", "data.csv", "--no-browser", *options, folder=small)
    assert result.exit_code in (1, 2)
    assert message in result.output


def test_a_port_that_is_taken_is_told_before_any_work(case, small):
    taken = bind(0)
    result = case.run("review", "data.csv", "--target", "label", "--port",
                      taken.getsockname()[1], folder=small)  # fmt: skip
    taken.close()
    assert result.exit_code == 2
    assert "port must be free" in result.output
    assert not (small / "data.csv.review.jsonl").exists()


def test_without_the_extra_it_says_how_to_get_it(case, small, monkeypatch):
    module = sys.modules["mtbayes.commands.review"]
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    result = case.run("review", "data.csv", "--target", "label", folder=small)
    assert result.exit_code == 2
    assert "pip install 'mtbayes[review]'" in result.output


def test_apply_tells_of_rows_that_have_changed(case, small):
    log = Log(small / "log.jsonl", "label")
    log.decide(Decision("0" * 24, 7, "drop", "a", "a"))
    log.close()
    result = case.run("apply", "log.jsonl", "data.csv", "-o", "out.csv", "--json", folder=small)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["without a row"] == 1
    assert "row 7 then" in found["notes"][0]
    assert (small / "out.csv").read_bytes() == (small / "data.csv").read_bytes()
    result = case.run("apply", "log.jsonl", "data.csv", "-o", "out.csv", folder=small)
    assert result.exit_code == 2


def test_fit_wants_a_review_of_its_target(case, small):
    Log(small / "log.jsonl", "x").close()
    result = case.run("fit", "data.csv", "--target", "label", "--review", "log.jsonl", folder=small)
    assert result.exit_code == 2
    assert "decisions about 'label', got some about 'x'" in result.output
