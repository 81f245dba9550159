"""Formulas of the pages as MathML: each is seen, is well formed, and says what the text says."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("formulas", DOCS / "formulas.py")
formulas = importlib.util.module_from_spec(spec)
spec.loader.exec_module(formulas)


def indented(name):
    """Indented lines of a page that are neither in fenced code nor in a list."""
    text = (DOCS / name).read_text("utf-8")
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^    (\S.*)$", text, flags=re.MULTILINE)


def shape(text):
    """The tree of a formula as nested tuples of tags, with text at the leaves."""

    def tell(one):
        return (one.tag, *map(tell, one)) if len(one) else one.text

    return [tell(one) for one in ElementTree.fromstring(f"<r>{formulas.mathml(text)}</r>")]


def letters(markup):
    """All that is drawn, without what text needs and a picture does not."""
    drawn = "".join(ElementTree.fromstring(f"<r>{markup}</r>").itertext())
    return sorted(re.sub(r"[\s(){}_^/*∗~∼¯\u0302-\u0304]", "", drawn).translate(SAME))


SAME = str.maketrans({"−": "-", "⋅": "·", "∑": "Σ", "∥": "|"})


@pytest.mark.parametrize("line", indented("mathematics.md"))
def test_every_line_of_the_mathematics_is_seen_and_nothing_is_lost(line):
    assert formulas.is_formula(line)
    markup = formulas.block([line])
    assert ElementTree.fromstring(markup).tag == "div"
    drawn = re.sub(r"\|\|", "|", line).replace("⁻¹", "-1").replace("²", "2")
    assert letters(markup) == letters(drawn.replace("<", "&lt;"))


def test_what_is_no_formula_stays():
    for name in ("scale.md", "command.md"):
        assert not any(map(formulas.is_formula, indented(name)))
    assert not formulas.is_formula("10 modes, log_t at t=0.5, ε=0.3: certified 0.6644")


def test_scripts_stand_where_they_belong():
    assert shape("R_t^m") == [("msubsup", "R", "t", "m")]
    assert shape("H^R_t") == [("msubsup", "H", "t", "R")]
    assert shape("q^t_p") == [("msup", "q", ("msub", "t", "p"))]
    assert shape("p_θj") == [("msub", "p", ("msub", "θ", "j"))]
    assert shape("p^(1-t)") == [("msup", "p", ("mrow", "1", "−", "t"))]
    assert shape("φ*") == [("msup", "φ", "∗")]
    assert shape("Σ_i x") == [("munder", "∑", "i"), "x"]


def test_fractions_reach_as_far_as_their_spaces_say():
    assert shape("m/(n·b) D") == [("mfrac", "m", ("mrow", "n", "⋅", "b")), "D"]
    assert shape("a b / c d = e") == [("mfrac", ("mrow", "a", "b"), ("mrow", "c", "d")), "=", "e"]
    assert shape("a + b/c") == ["a", "+", ("mfrac", "b", "c")]
    assert shape("(1/n) x") == [("mfrac", "1", "n"), "x"]
    # Brackets of an argument stay.
    assert shape("f(1/n)") == ["f", ("mrow", "(", ("mfrac", "1", "n"), ")")]
    assert shape("(a - 1)/b") == [("mfrac", ("mrow", "a", "−", "1"), "b")]


def test_the_text_is_kept_for_those_who_hear_it():
    assert 'alttext="p_q(x) = E_q p_θ(x)"' in formulas.block(["    p_q(x) = E_q p_θ(x)"])
    assert 'alttext="a &lt; b"' in formulas.inline("a < b")
