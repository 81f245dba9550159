"""Free text as numbers: learned from the rows of a fit, the same for later ones, in any script."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import hstack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from mtbayes._values import packed, unpacked
from mtbayes.data import texts
from mtbayes.data.schema import Schema, learn_table
from mtbayes.errors import InvalidInput

N = 80
GOOD = ["works well and looks great", "cheap but very good", "I would buy it again any day"]
BAD = ["broke after a single week", "never again, a waste of money", "bad box and a rude seller"]
CHINESE = ["恒生指数收平折价百分之一", "新片客串复古发型被嘲笑", "改变调校使车手找回状态"]


def sentences(stock, n=N):
    return [f"{stock[i % 3]}, said buyer {'abcdefghij'[i % 10] * (1 + i // 10)}" for i in range(n)]


def table_of(cells, **others):
    return pa.table({"v": pa.array(cells), "y": ["a", "b"] * (len(cells) // 2), **others})


@pytest.fixture
def mixed():
    both = zip(sentences(GOOD), sentences(BAD), strict=True)
    return [pair[i % 2] for i, pair in enumerate(both)]


def kinds(table):
    return {c.name: type(c).__name__ for c in learn_table(table, "y")[0].columns}


def test_sentences_are_text_and_codes_names_and_repeats_are_not(mixed):
    table = table_of(
        mixed,
        code=[f"AB-{i * i}" for i in range(N)],
        name=[f"Smith{chr(97 + i % 26)}, John{chr(97 + i // 4)}" for i in range(N)],
        often=[GOOD[i % 3] for i in range(N)],
        number=[float(i * i) for i in range(N)],
    )
    assert kinds(table) == {"v": "Text", "often": "Category", "number": "Number"}


def test_scripts_without_spaces_are_text():
    cells = [f"{CHINESE[i % 3]}{chr(0x4E00 + 7 * i)}{chr(0x5E00 + 11 * i)}" for i in range(N)]
    assert kinds(table_of(cells)) == {"v": "Text"}


def test_places_are_those_of_scikit_learns_parts(mixed):
    schema, coded = learn_table(table_of(mixed), "y")
    # Vectors of words and of letters, each as long as the share of the text that its terms cover.
    word = TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=r"(?u)\b\w+\b")
    letters = TfidfVectorizer(sublinear_tf=True, min_df=2, analyzer="char_wb", ngram_range=(1, 4))
    parts, lengths = [], []
    for one in (word, letters):
        parts.append(one.fit_transform(mixed))
        found = [term for text in mixed for term in one.build_analyzer()(text)]
        lengths.append(np.mean([term in one.vocabulary_ for term in found]))
    assert lengths[0] < 0.95 < lengths[1] < 1  # names of buyers are in one text each
    weighed = hstack([p * v for p, v in zip(parts, lengths, strict=True)]) / np.hypot(*lengths)
    expected = TruncatedSVD(N // 5, random_state=0).fit(weighed).transform(weighed)
    np.testing.assert_allclose(coded.x @ coded.x.T, expected @ expected.T, atol=1e-5)
    assert len(schema.features) == N // 5
    spread, before = coded.x.std(axis=0), expected.std(axis=0)
    assert spread.max() / spread.min() < 0.5 * before.max() / before.min()


def test_words_that_hardly_come_again_say_little(mixed):
    chinese = [f"{CHINESE[i % 3]}{chr(0x4E00 + 7 * i)}{chr(0x5E00 + 11 * i)}" for i in range(N)]
    chinese[:4] = [f"第七 {text}" for text in chinese[:4]]
    found = [learn_table(table_of(cells), "y")[0].columns[0].lengths for cells in (mixed, chinese)]
    assert found[0][0] > 0.8 * found[0][1]
    assert found[1][0] < 0.1 * found[1][1]


def test_later_texts_are_coded_alike_and_teach_nothing(mixed):
    schema, coded = learn_table(table_of(mixed), "y")
    np.testing.assert_array_equal(schema.code(pa.table({"v": mixed[:5]})), coded.x[:5])
    new = schema.code(pa.table({"v": ["zzz qqq", "works well and looks great zzz qqq", None]}))
    assert np.isfinite(new).all()
    near = coded.x[0] / np.linalg.norm(coded.x[0])
    assert new[1] @ near / np.linalg.norm(new[1]) > 0.7
    np.testing.assert_array_equal(new[2], 0)


def test_large_vocabularies_are_hashed(mixed, monkeypatch):
    monkeypatch.setattr(texts, "_LARGE", 10)
    schema, coded = learn_table(table_of(mixed), "y")
    assert schema.columns[0].terms == {"words": None, "letters": None}
    good = np.array([cell[:5] in {g[:5] for g in GOOD} for cell in mixed])
    centres = coded.x[good].mean(axis=0), coded.x[~good].mean(axis=0)
    assert np.linalg.norm(centres[0] - centres[1]) > 0.2


def test_several_columns_of_text_stand_beside_numbers(mixed):
    numbers = np.sqrt(np.arange(N))
    table = table_of(mixed, n=numbers, other=sentences(BAD))
    schema, coded = learn_table(table, "y")
    alone = [learn_table(table.select([name, "y"]), "y")[1].x for name in ("v", "n", "other")]
    assert [type(column).__name__ for column in schema.columns] == ["Text", "Number", "Text"]
    np.testing.assert_array_equal(coded.x, np.concatenate(alone, axis=1))


def test_files_hold_terms_and_arrays(mixed):
    gaps = [None if i % 9 == 0 else cell for i, cell in enumerate(mixed)]
    schema, coded = learn_table(table_of(gaps, n=np.sqrt(np.arange(N))), "y")
    arrays = {}
    kept = packed(schema.as_json(), arrays, "beside")
    again = Schema.from_json(unpacked(kept, arrays))
    np.testing.assert_array_equal(again.code(table_of(gaps, n=np.sqrt(np.arange(N)))), coded.x)
    assert again.features == schema.features
    name = next(name for name in arrays if name.endswith("weights"))
    with pytest.raises(InvalidInput, match="must go with its terms"):
        Schema.from_json(unpacked(kept, arrays | {name: arrays[name][:-1]}))


def test_words_are_left_out_as_wholes():
    assert texts.without_words("no, not now: no") == {
        "no": ", not now:",
        "not": "no, now: no",
        "now": "no, not : no",
    }
    assert texts.without_words("新片客串") == {"新片": "客串", "客串": "新片"}
