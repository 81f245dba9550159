"""Decisions on the disk: none is lost, none is made up, and undoing is remembered too."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbayes.errors import InvalidInput
from mtbayes.reviewing.decisions import ACTIONS, Decision, Log, exported, read_decisions, write_csv


def decision(key, action="keep", value="b"):
    return Decision(key, 3, action, "a", value)


@pytest.fixture
def log(tmp_path):
    found = Log(tmp_path / "log.jsonl", "label")
    yield found
    found.close()


def test_every_decision_is_in_the_file_at_once(log):
    log.decide(decision("one", "correct", 'b\n"ü'))
    log.decide(decision("two", "drop"))
    lines = log.path.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"review": 1, "target": "label"}
    assert [json.loads(line)["key"] for line in lines[1:]] == ["one", "two"]
    assert log.undo().key == "two"
    assert json.loads(log.path.read_text(encoding="utf-8").splitlines()[-1]) == {"undo": "two"}
    target, held = read_decisions(log.path)
    assert target == "label"
    assert list(held) == ["one"]
    assert held["one"].value == 'b\n"ü'
    assert held["one"].time


def test_a_second_start_goes_on_and_undoes_what_the_first_decided(log):
    log.decide(decision("one"))
    log.decide(decision("two"))
    log.decide(decision("one", "drop"))
    log.close()
    again = Log(log.path, "label")
    assert again.stack["one"].action == "drop"
    again.undo()
    assert again.stack["one"].action == "keep"
    assert [again.undo().key, again.undo().key, again.undo()] == ["two", "one", None]
    again.close()


def test_undo_leaves_what_is_about_rows_that_are_not_there(log):
    for key in ("one", "two", "one", "gone"):
        log.decide(decision(key))
    assert log.undo({"one", "two"}).key == "one"
    assert list(log.stack.holding()) == ["one", "two", "gone"]
    log.close()
    assert list(read_decisions(log.path)[1]) == ["one", "two", "gone"]


def test_what_was_written_is_known(log, tmp_path):
    log.export(tmp_path / "clean.csv")
    assert exported(log.path) == {str(tmp_path / "clean.csv")}
    assert exported(tmp_path / "none.jsonl") == set()


def test_a_line_that_was_cut_off_was_never_decided(log):
    log.decide(decision("one"))
    log.close()
    with log.path.open("ab") as file:
        file.write(b'{"key": "two", "row": 3, "act')
    again = Log(log.path, "label")
    assert list(again.stack.holding()) == ["one"]
    again.decide(decision("three"))
    again.close()
    assert list(read_decisions(log.path)[1]) == ["one", "three"]


@settings(deadline=None)  # each decision waits for the disk
@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from("abc"), st.sampled_from(ACTIONS)))))
def test_undo_is_the_way_back(tmp_path_factory, steps):
    """Against a list of all states, the last of which is dropped by an undo."""
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    log, states = Log(path, "label"), [{}]
    for step in steps:
        if step is None:
            log.undo()
            states = states[:-1] or states
        else:
            log.decide(decision(*step))
            states.append({**states[-1], step[0]: step[1]})
    log.close()
    assert {key: d.action for key, d in read_decisions(path)[1].items()} == states[-1]


def test_a_log_belongs_to_one_review_and_one_target(log):
    with pytest.raises(InvalidInput, match="another is running"):
        Log(log.path, "label")
    log.close()
    with pytest.raises(InvalidInput, match="about 'price', got some about 'label'"):
        Log(log.path, "price")


@pytest.mark.parametrize("text", ["x,y\n1,2\n", '{"some": 1}\n{"key": 1}\n', ""])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="must hold decisions of `mtbayes review`"):
        read_decisions(path)


def test_decisions_as_a_table_come_back(log, tmp_path):
    log.decide(decision("one", "correct", 'say "b", so'))
    log.decide(decision("two#2"))
    path = tmp_path / "decisions.csv"
    write_csv("label", log.stack.holding().values(), path)
    assert read_decisions(path) == ("label", log.stack.holding())
