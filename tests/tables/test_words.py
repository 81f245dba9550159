"""Words that made a row suspicious, found by a model of text."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from mtbayes.commands.audit import _audited
from mtbayes.commands.predict import predictions
from mtbayes.data.schema import learn_table
from mtbayes.estimators import RobustClassifier
from mtbayes.tables.effects import has_effect
from mtbayes.tables.facts import gather
from mtbayes.tables.findings import findings
from mtbayes.tables.model import TableModel, TableRows
from mtbayes.tables.words import with_words

N = 100
WORDS = {"good": ["great", "lovely", "perfect"], "bad": ["broken", "awful", "refund"]}


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    label = np.array(["good", "bad"])[np.arange(N) % 2]
    plain = ["the", "box", "came", "on", "a", "day", "with", "rain", "and", "my", "dog", "saw"]
    cells = [
        " ".join(rng.permutation([*rng.choice(plain, 6), *rng.choice(WORDS[y], 2, replace=False)]))
        for y in label
    ]
    given = label.copy()
    given[4] = "bad"
    table = pa.table({"review": cells, "stars": rng.normal(size=N), "y": given})
    schema, coded = learn_table(table, "y")
    return schema, TableRows(table, 1 + np.arange(N), coded.x, coded.y)


def model_of(learned, learner):
    schema, rows = learned
    return TableModel(RobustClassifier(learner, t=1.0, random_state=0).fit(rows.x, rows.y), schema)


def test_words_that_contradict_a_label_are_named(learned):
    model, rows = model_of(learned, LogisticRegression()), learned[1]
    found = findings(model, rows.y, model.estimator.fitted_.training)
    assert found.order[0] == 4
    told = with_words(model, rows, found, 1)
    assert "; words against it: " in told.why[0]
    named = told.why[0].split("; words against it: ")[1]
    assert any(word in named for word in WORDS["good"])
    assert not any(word in named for word in WORDS["bad"])
    assert told.why[1:] == found.why[1:]


def test_text_is_kept_in_a_models_file(learned, tmp_path):
    model, rows = model_of(learned, "trees"), learned[1]
    model.save(tmp_path / "text.mtb")
    again = TableModel.load(tmp_path / "text.mtb")
    x = again.schema.code(rows.table)
    np.testing.assert_array_equal(x, rows.x)
    assert predictions(again, x, 0.9).equals(predictions(model, x, 0.9))
    assert [has_effect(again, name) for name in ("review", "stars")] == [False, True]


def test_audit_and_report_name_the_words(learned, tmp_path):
    model, rows = model_of(learned, LogisticRegression()), learned[1]
    judged = model.estimator.fitted_.training
    audited = _audited(model, rows, tmp_path / "a.csv", None, 1, influence=False, safe=False)
    files = tmp_path / "some.mtb", tmp_path / "some.csv"
    fitted = np.ones(N, bool)
    facts = gather(model, rows, judged, fitted, files, 0, lambda progress: None)
    why = audited.suspects[0]["why"]
    assert any(word in why.partition("words against it")[2] for word in WORDS["good"])
    assert why in [suspect["why"] for suspect in facts.suspects]
