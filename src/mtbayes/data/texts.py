"""Columns of free text: words and runs of letters, weighed by how rare they are, in few numbers.

What is learned from the rows of a fit (which words there are, how rare each is, the directions in
which texts differ most) is kept as lists and arrays. Any script will do: where words are not set
apart by spaces, runs of letters speak.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc

from mtbayes._values import storable
from mtbayes.data.cells import Cells, Unfit
from mtbayes.errors import InvalidInput
from mtbayes.types import FloatArray

_WORDS = 3  # in at least half of the cells, for a column to be text
_UNSPACED = 6  # signs of a script without spaces that say as much
_WORD = r"\p{L}[\p{L}\p{M}'’]*"
_SCRIPTS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_PAIRS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0eff\u1000-\u109f]{2}")
_FEATURES = 400  # numbers that a text becomes, at most
_ROWS_EACH = 5  # for each of them, at least
_LARGE = 20_000  # terms, beyond which they are hashed
_SLOTS = 2**14
_ANALYSERS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "token_pattern": r"(?u)\b\w+\b"},
    "letters": {"analyzer": "char_wb", "ngram_range": (1, 4)},
}


def is_prose(text: Any) -> bool:
    """Whether at least half of the cells that are given are sentences, and not names or codes.

    >>> import pyarrow as pa
    >>> is_prose(pa.array(["it broke after a week", "fits well, cheap", None]))
    True
    >>> is_prose(pa.array(["AB-123", "Smith, John", "see file 7"]))
    False
    """
    given = len(text) - text.null_count
    words = pc.greater_equal(_count(text, _WORD), _WORDS)
    unspaced = pc.greater_equal(_count(text, _SCRIPTS), _UNSPACED)
    prose = pc.sum(pc.or_(words, unspaced)).as_py() or 0
    return given > 0 and 2 * prose >= given


def _count(text: Any, pattern: str) -> Any:
    return pc.count_substring_regex(text, pattern)


@storable
@dataclass(frozen=True, eq=False)
class Text:
    """Words and runs of letters by TF-IDF, reduced to the directions in which texts differ most.

    terms: of each analyser, in the order of their weights; None where they are hashed
    weights: [T], how rare each term is; directions: of the reduced space, [k, T]
    lengths: of each analyser's part of a text: how much of the fitted texts its terms cover
    """

    name: str
    gaps: bool
    terms: dict[str, Any]
    weights: FloatArray
    directions: FloatArray
    lengths: FloatArray
    kind: ClassVar[str] = "text"
    spelling: ClassVar[str] = ""

    def __post_init__(self) -> None:
        known = all(_in_order(terms) for terms in self.terms.values() if terms is not None)
        sizes = [_SLOTS if terms is None else len(terms) for terms in self.terms.values()]
        shapes = [self.weights.shape, self.directions.shape[1:], self.lengths.shape]
        expected = [(sum(sizes),), (sum(sizes),), (len(_ANALYSERS),)]
        if not known or list(self.terms) != list(_ANALYSERS) or shapes != expected:
            raise InvalidInput(
                f"weights of {self.name!r} must go with its terms, got others. Fit it again; "
                "an older mtbayes weighed terms in another way."
            )

    @classmethod
    def learn(cls, name: str, cells: Cells) -> Text:
        """From a column of sentences that rarely repeat."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        if not cells.is_text or not is_prose(cells.text):
            raise Unfit
        texts = pc.drop_null(cells.text).to_pylist()
        terms = {how: _terms(texts, how) for how in _ANALYSERS}
        counts = _counts(texts, terms)
        size = min(_FEATURES, len(texts) // _ROWS_EACH, sum(v.shape[1] for v in counts) - 1)
        if size < 1:
            raise Unfit("text of which too little is there")
        rare = np.concatenate([TfidfTransformer().fit(v).idf_ for v in counts if v.shape[1]])
        lengths = np.array([_cover(texts, how, v) for how, v in zip(terms, counts, strict=True)])
        weighed = _weighed(counts, rare, lengths)
        found = TruncatedSVD(size, random_state=0).fit(weighed)
        gaps = cells.text.null_count > 0
        directions = turned(found.components_)
        single: list[Any] = [v.astype(np.float32) for v in (rare, directions, lengths)]
        return cls(name, gaps, terms, *single)

    def features(self) -> list[str]:
        """One for each direction."""
        size = len(self.directions)
        return [
            *(f"{self.name}, direction {i + 1}" for i in range(size)),
            *([f"{self.name} is missing"] if self.gaps else []),
        ]

    def code(self, cells: Cells) -> tuple[FloatArray, int]:
        """Places of texts in the reduced space; a missing one is at its origin."""
        if not cells.is_text:
            raise Unfit
        missing = np.asarray(cells.text.is_null().to_numpy(zero_copy_only=False), bool)
        found = self.places(pc.fill_null(cells.text, "").to_pylist())
        return np.concatenate([found, missing[:, None]], axis=1) if self.gaps else found, 0

    def places(self, texts: list[str]) -> FloatArray:
        """Texts in the reduced space, [n, k]."""
        weighed = _weighed(_counts(texts, self.terms), self.weights, self.lengths)
        return np.asarray(weighed @ self.directions.T, float)

    def contradiction(self, cells: Cells) -> int | None:
        """Text is as it is."""

    def new(self, cells: Cells) -> Counter[str]:
        """Any text may come."""
        return Counter()


def without_words(text: str) -> dict[str, str]:
    """By each word of a text, or pair of signs in a script without spaces, the text without it.

    >>> without_words("good, very good")
    {'good': ', very', 'very': 'good, good'}
    """
    found = (part for word in re.findall(r"\w+", text) for part in _PAIRS.findall(word) or [word])
    return {
        part: " ".join(re.sub(_alone(part), " ", text).split()) for part in dict.fromkeys(found)
    }


def _alone(part: str) -> str:
    """The word as such, and not within another; a pair of signs anywhere."""
    escaped = re.escape(part)
    return escaped if _PAIRS.fullmatch(part) else rf"\b{escaped}\b"


def turned(directions: FloatArray) -> FloatArray:
    """The same space by other axes [k, T], in all of which texts differ about alike.

    Whoever learns from columns divides each by its spread. That would make the least directions,
    which are mostly noise, as loud as the first. Between axes at random there is no such
    difference, and distances between texts stay what they are.
    """
    size = len(directions)
    axes, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))
    return np.asarray(axes @ directions, float)


def _in_order(terms: Any) -> bool:
    """Whether terms are what an analyser makes: text, each once, in alphabetical order."""
    words = isinstance(terms, list | tuple) and all(isinstance(term, str) for term in terms)
    return words and all(one < other for one, other in pairwise(terms))


def _terms(texts: list[str], how: str) -> list[str] | None:
    """Those that two texts have at least; None where they are too many to keep."""
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        least = 2 if len(texts) > 20 else 1
        found = CountVectorizer(min_df=least, **_ANALYSERS[how]).fit(texts)
    except ValueError:  # no term is in two texts
        return []
    terms = found.get_feature_names_out().tolist()
    return None if len(terms) > _LARGE else terms


def _counts(texts: list[str], terms: dict[str, Any]) -> list[Any]:
    """How often each term is in each text, by analyser, sparse."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

    parts = []
    for how, known in terms.items():
        options = _ANALYSERS[how]
        if known is None:
            hashed = HashingVectorizer(
                n_features=_SLOTS, norm=None, alternate_sign=False, **options
            )
            parts.append(hashed.transform(texts))
        elif known:
            parts.append(CountVectorizer(vocabulary=known, **options).transform(texts))
        else:
            parts.append(csr_array((len(texts), 0)))
    return [part.astype(float) for part in parts]


def _cover(texts: list[str], how: str, counts: Any) -> float:
    """The share of all that an analyser finds in texts that is of known terms."""
    from sklearn.feature_extraction.text import CountVectorizer

    analyse = CountVectorizer(**_ANALYSERS[how]).build_analyzer()
    return float(counts.sum()) / max(1, sum(len(analyse(text)) for text in texts))


def _weighed(counts: list[Any], weights: FloatArray, lengths: FloatArray) -> Any:
    """Counts on a log scale, by how rare the terms are, as vectors of length 1.

    Each analyser has a part of its own length: many letters do not drown a word, and words of a
    script that sets none apart, hardly any of which come again, say little.
    """
    from scipy.sparse import diags, hstack
    from sklearn.preprocessing import normalize

    parts, begin = [], 0
    for part, length in zip(counts, lengths, strict=True):
        logs = part.copy()
        logs.data = 1 + np.log(logs.data)
        end = begin + part.shape[1]
        parts.append(normalize(logs @ diags(weights[begin:end])) * length if end > begin else logs)
        begin = end
    return normalize(hstack(parts).tocsr())
