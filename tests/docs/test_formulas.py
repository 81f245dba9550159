"""Formulas of the pages as MathML: each is seen, is well formed, and says what the text says."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def part(name):
    """A module of the site's hooks; some need its tools."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


formulas, sentences = part("formulas"), part("sentences")


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
    return sorted(re.sub(r"[\s(){}_^/*√∗~∼¯\u0302-\u0304]", "", drawn).translate(SAME))


SAME = str.maketrans({"−": "-", "⋅": "·", "∑": "Σ", "∥": "|"})


@pytest.mark.parametrize("line", indented("mathematics.md"))
def test_every_line_of_the_mathematics_is_seen_and_nothing_is_lost(line):
    assert formulas.is_formula(line)
    assert not re.search(r",  \S", line), "a column needs three spaces"
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


def test_a_root_reaches_over_its_brackets():
    assert formulas.mathml("2√n") == "<mn>2</mn><msqrt><mi>n</mi></msqrt>"
    assert shape("1/√(2π)") == [("mfrac", "1", ("msqrt", "2", "π"))]


def test_a_minus_is_a_sign_or_a_difference():
    assert '<mo form="prefix">−</mo>' in formulas.mathml("E[-log p]")
    assert "prefix" not in formulas.mathml("1-t")


@pytest.mark.parametrize(
    "text",
    [
        "∂_φ R(z) = -p_q(z)^(1-t)·(z-φ)/2",
        "(4π)^(-(1-t)/2) e^(-1/2)/√(2(1-t))",
        "∫ φ(u)^m u^{t-2} du/Γ(t)",
        "π (p/π)^(1/T)",
        "(1/std)^(1-t)/(1-t)",
        "(1 + (1-t) y)^(1/(1-t))",
        "E_q[ -(1+b)/b (p_θ(x)^b - 1) + ∫ p_θ^(1+b) - 1 ]",
        "-∫ ν_ε log_t p_q",
        "dφ*/dγ",
        "s = H⁻¹∂f",
        "p(θ)",
        "ν",
        "1/(1-t)",
        "S_∞ = 2 S_2 - S_1",
    ],
)
def test_a_formula_in_a_sentence_is_seen_as_one_and_as_a_whole(text):
    for sentence in ("{}", "It is {}, and so on", "(what {} says)", "A row with {} is a row."):
        assert found(sentence.format(text)) == [text]
    assert "^" not in "".join(ElementTree.fromstring(formulas.inline(text)).itertext())


@pytest.mark.parametrize(
    "text",
    [
        "I had a row, t = 1 and (m,t)-robust learning in [0, 1] of row(s) (a) and (b).",
        "Use make_pipeline, x_test, log_lik, __init__ or mtbayes.maths.log_t, and predict(X).",
        "8 μs a row, 5 to 10 (see above), and/or (less) 1/2 of x-y; NLL .4 → .3, A - B.",
        "how-to-choose.md#t_p-a-prior, #t_p and /t_p/t_p and _t_ are names",
    ],
)
def test_words_and_names_are_no_formulas(text):
    assert not found(text)


def found(text):
    runs = [match[0] for match in sentences.FORMULA.finditer(text)]
    return [run for run in runs if sentences.shows(run)]


def test_an_article_is_no_factor():
    assert found("for ε a number, p_θ (the model) and φ I know") == ["ε", "p_θ", "φ"]


def typeset(text):
    markdown = pytest.importorskip("markdown")
    return markdown.markdown(text, extensions=["tables", part("typeset").Formulas()])


def test_targets_of_links_and_code_are_no_formulas():
    html = typeset("[`t_p`](#t_p-a-prior), [of p_q](p_q), `p^2` and <a href='p_q'>q_1</a>")
    assert re.findall("href=.([^'\">]*)", html) == ["#t_p-a-prior", "p_q", "p_q"]
    assert "<code>p^2</code>" in html
    assert html.count("<math") == 2  # p_q in a link's text, q_1


def test_a_star_above_is_no_emphasis():
    html = typeset("dφ*/dγ and φ* but *φ* and **ε**")
    assert html.count("<msup>") == 2
    assert html.count("<em>") == html.count("<strong>") == 1


def test_a_reference_to_an_entry_is_code_and_no_link():
    pytest.importorskip("griffe")
    told = part("docstrings").as_markdown("So it is: result[i][j] for i, `known[i][j]`.")
    assert told == "So it is: `result[i][j]` for i, `known[i][j]`."


def test_brackets_grow_because_the_font_is_one_of_mathematics():
    style = (DOCS / "stylesheets/extra.css").read_text("utf-8")
    assert re.search(r'math \{ font-family: "[^"]*Math"', style)


def test_the_text_is_kept_for_those_who_hear_it():
    assert 'alttext="p_q(x) = E_q p_θ(x)"' in formulas.block(["    p_q(x) = E_q p_θ(x)"])
    assert 'alttext="a &lt; b"' in formulas.inline("a < b")
