"""Files as people have them, from the command that fits them to the file of predictions."""

import numpy as np
import pyarrow.csv
import pytest

N = 60
QUICK = ["--learner", "trees", "--t", "1", "--seed", "0"]
X = np.random.default_rng(0).permutation(np.linspace(1000, 3000, N))


def german(value):
    """1628.5 as 1.628,50."""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, case):
    """Numbers, days and labels as in Germany; labels that are one number in two spellings."""
    folder = tmp_path_factory.mktemp("spellings")
    rows = [
        f"{german(x)};{1 + i % 28:02d}/{1 + i % 12:02d}/2021;{'01' if x > 2000 else '1'}"
        for i, x in enumerate(X)
    ]
    text = "\r\n".join(["Preis;Tag;Größe", *rows])
    (folder / "d.csv").write_bytes(text.encode("latin-1"))
    given = ("fit", "d.csv", "--target", "Größe", "--task", "classes", *QUICK)
    return folder, case.run(*given, folder=folder)


def predicted(case, folder, name, rows):
    (folder / f"{name}.csv").write_text("\n".join(["Preis;Tag", *rows]) + "\n", encoding="utf-8")
    given = ("predict", "d.mtb", f"{name}.csv", "-o", f"{name}-out.csv")
    found = case.run(*given, folder=folder)
    if found.exit_code:
        return found
    kinds = pyarrow.csv.ConvertOptions(column_types={"prediction": "string"})
    return pyarrow.csv.read_csv(folder / f"{name}-out.csv", convert_options=kinds)


def test_nobody_asked_trees_for_checkpoints(fitted):
    assert "no effect" not in fitted[1].output


def test_labels_reach_predictions_as_the_file_spells_them(case, fitted):
    folder, said = fitted
    assert said.exit_code == 0, said.output
    assert "told apart by their spelling: '01' and '1'" in said.stderr
    found = predicted(case, folder, "new", ["2.900,00;05/06/2021", "1.100,00;05/06/2021"])
    assert found.column("prediction").to_pylist() == ["01", "1"]


def test_a_later_file_is_read_in_the_style_of_the_first(case, fitted):
    """Without a comma nothing in it tells; a day that may be a month neither."""
    folder, _ = fitted
    bare = predicted(case, folder, "bare", ["2.900;05/06/2021", "1.100;05/06/2021"])
    full = predicted(case, folder, "full", ["2900,00;05/06/2021", "1100,00;05/06/2021"])
    assert bare.equals(full)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1.100,00;05/13/2021", "'05/13/2021' in line 3"),
        ("1,100.00;05/06/2021", "'1,100.00' in line 3"),
    ],
)
def test_what_contradicts_that_style_is_refused_with_its_line(case, fitted, row, said):
    found = predicted(case, fitted[0], "other", ["2.900,00;05/06/2021", row])
    assert not (fitted[0] / "other-out.csv").exists()
    assert found.exit_code == 1
    assert said in found.stderr


def test_what_no_cell_tells_is_told_on_the_screen(case, tmp_path):
    rows = [f"{x / 1000:.3f},0{1 + i % 9}/0{1 + i % 8}/2021,{x > 2000}" for i, x in enumerate(X)]
    (tmp_path / "d.csv").write_text("\n".join(["price,day,large", *rows]))
    found = case.run("fit", "d.csv", "--target", "large", *QUICK, folder=tmp_path)
    assert found.exit_code == 0, found.output
    assert "since no cell tells" in found.stderr
    assert "'price' has cells like" in found.stderr
    assert "days and months of 'day' may as well be the other way round" in found.stderr


def test_formulas_are_marked_in_what_is_written_for_spreadsheets(case, tmp_path):
    labels = {True: "=1+1", False: "b"}
    rows = [f"{x:.1f},{labels[bool(x > 2000)]}" for x in X]
    (tmp_path / "d.csv").write_text("\n".join(["price,label", *rows]))
    case.run("fit", "d.csv", "--target", "label", *QUICK, folder=tmp_path)
    for name, extra in (("plain", ()), ("safe", ("--safe-cells",))):
        given = ("predict", "d.mtb", "d.csv", "-o", f"{name}.csv", *extra)
        assert case.run(*given, folder=tmp_path).exit_code == 0
        given = ("audit", "d.csv", "--target", "label", "-o", f"{name}-audit.csv", *QUICK, *extra)
        assert case.run(*given, folder=tmp_path).exit_code == 0
        for file, column in ((f"{name}.csv", "prediction"), (f"{name}-audit.csv", "given")):
            found = set(pyarrow.csv.read_csv(tmp_path / file).column(column).to_pylist())
            assert found == {"b", "'=1+1" if extra else "=1+1"}


def test_audit_and_report_name_words(case, tmp_path):
    """From a file with a column of text to the list and the page."""
    said = {True: "a great and lovely thing", False: "broken on the first day"}
    wrong = 7
    rows = [
        f'"{said[bool(x > 2000)]}, wrote {chr(97 + i % 26)}{chr(97 + i // 3)}"'
        f",{'dear' if (x > 2000) != (i == wrong) else 'cheap'}"
        for i, x in enumerate(X)
    ]
    (tmp_path / "d.csv").write_text("\n".join(["remark,label", *rows]))
    given = ("--target", "label", "--learner", "linear", "--t", "1", "--m", "1")
    assert case.run("audit", "d.csv", *given, folder=tmp_path).exit_code == 0
    first = pyarrow.csv.read_csv(tmp_path / "d-audit.csv").slice(0, 1).to_pylist()[0]
    assert first["row"] == 1 + wrong
    words = first["why"].partition("words against it: ")[2]
    own, other = said[bool(X[wrong] > 2000)], said[bool(X[wrong] <= 2000)]
    named = {word.strip(" '") for word in words.split(",")}
    assert named & set(own.split())
    assert not named & set(other.split())
    assert case.run("fit", "d.csv", *given, folder=tmp_path).exit_code == 0
    assert case.run("report", "d.mtb", "d.csv", "-o", "d.html", folder=tmp_path).exit_code == 0
    assert f"words against it: {words}".replace("'", "&#x27;") in (tmp_path / "d.html").read_text()
