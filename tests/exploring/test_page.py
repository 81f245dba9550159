"""The page to explore in: one file, and in a browser the numbers of the library."""

import json
import math
import re
import shutil
import subprocess
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from typer.testing import CliRunner

from mtbayes.cli import app
from mtbayes.criteria import Criterion
from mtbayes.experiments import toy
from mtbayes.exploring import page
from mtbayes.maths import log_t_from_log
from mtbayes.metrics.distance import total_variation
from mtbayes.solve import fixed_point, objective
from mtbayes.theory.sensitivity import contamination_term, gaussian_minimum

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
MANY = [round(x, 2) for x in np.linspace(-11, 10, 12).tolist()]
CASES = [
    {"points": points, "m": m, "t": t, "beta": beta, "tP": t_p, "mean": mean}
    for points, m, t, beta, t_p, mean in [
        (toy.MATCHED, 10, 0.5, 10, 1, 0),
        (toy.MATCHED, 10, 1, 10, 1, 0),
        (toy.MATCHED, 1, 1, 1, 1, 0),
        (toy.MATCHED, 2, 1, 0.1, 1, 10),  # mass far from the rows: integrands that die late
        (toy.MATCHED, 50, 0.1, 100, 1, -3),
        (toy.MATCHED, 10, 0, 10, 0.5, 0),
        (toy.MATCHED, 10, 0.3, 10, 0.5, 5),
        ([0.4], 3, 0.98, 3, 1, 0),
        (MANY, 20, 0.7, 5, 0.9, 0),
    ]
]

WATCH = """<script>
const bad = []; console.error = (...said) => bad.push(said.join(" "));
addEventListener("error", event => bad.push(event.message || "not loaded"), true);
</script>"""

# In a frame: no window is as narrow as a phone.
FRAME = """<!doctype html><meta charset="utf-8"><body><script>
addEventListener("message", event => {
  const out = document.createElement("pre"); out.id = "seen";
  out.textContent = event.data; document.body.append(out);
});
</script><iframe width=390 height=844 src="page.html"></iframe>"""


def test_it_is_one_file_that_loads_nothing():
    text = page()
    assert not re.findall(r"<(?:script|img|iframe|link)[^>]*\s(?:src|href)=(?!\"data:)", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(r"\bimport\(|\bfetch\(|@import|XMLHttpRequest", text)


def test_the_site_has_the_same_file():
    """`mtbayes explore -o docs/explore.html --force --no-browser` writes it."""
    assert (DOCS / "explore.html").read_text("utf-8") == page()


def test_the_command_writes_it(tmp_path):
    out = tmp_path / "explore.html"
    arguments = ["explore", "-o", str(out), "--no-browser"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert out.read_text("utf-8") == page()
    assert CliRunner().invoke(app, arguments).exit_code == 2  # it exists
    told = json.loads(CliRunner().invoke(app, ["explore", "--json"]).stdout)
    assert Path(told["out"]).read_text("utf-8") == page()
    shutil.rmtree(Path(told["out"]).parent)


def look(folder, script, scheme, shell="page.html", site=None):
    """What a script at the end of the page has seen, in light (1) or dark (0)."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    script = f"<script>{script}</script></body>"
    text = page().replace("<head>", f"<head>{WATCH}").replace("</body>", script)
    (folder / "page.html").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, "--no-sandbox", "--headless", "--disable-gpu", "--enable-logging=stderr",
         "--disable-background-networking", f"--user-data-dir={folder / 'user'}",
         "--window-size=1280,900", f"--blink-settings=preferredColorScheme={scheme}",
         "--dump-dom", f"{site or folder.as_uri()}/{shell}"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert ":CONSOLE" not in done.stderr, done.stderr
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(found[1]))


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    script = f"const CASES = {json.dumps(CASES)};" + (HERE / "look.js").read_text("utf-8")
    return look(tmp_path_factory.mktemp("explore"), script, 1)


def test_a_phone_does_not_scroll_sideways_and_can_be_read_and_pressed(tmp_path):
    (tmp_path / "frame.html").write_text(FRAME, encoding="utf-8")
    phone = look(tmp_path, (HERE / "glance.js").read_text("utf-8"), 0, "frame.html")
    assert phone["bad"] == []
    *widths, screen = phone["wide"]
    assert screen == 390
    assert max(widths) <= screen
    assert phone["ground"] == "rgb(21, 24, 28)"  # dark, as the reader's scheme is
    assert min(phone["buttons"]) >= 40
    assert min(phone["text"]) > 11
    assert phone["hidden"] == []  # what has the focus is not behind the picture
    assert phone["touched"] == [0, 1, 2, 3, 4]
    assert not phone["home"]


def test_within_its_site_the_page_leads_back(tmp_path):
    (tmp_path / "frame.html").write_text(FRAME, encoding="utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    handler.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        site = f"http://127.0.0.1:{server.server_port}"
        script = (HERE / "glance.js").read_text("utf-8")
        assert look(tmp_path, script, 1, "frame.html", site)["home"]
        server.shutdown()


def exact(case):
    """What the library makes of a case, and the problem itself."""
    m, beta = case["m"] or math.inf, case["beta"] or math.inf
    prior = norm.pdf(toy.THETA, case["mean"], 3)
    log_lik = norm.logpdf(np.array(case["points"]), toy.THETA[:, None])
    problem = log_lik, prior / prior.sum(), Criterion(m, case["t"], beta, case["tP"])
    return fixed_point(*problem, tol=1e-8, max_steps=300).state, problem


@pytest.mark.parametrize("i", range(len(CASES)))
def test_the_fixed_point_is_that_of_the_library(seen, i):
    found, case = seen["cases"][i], CASES[i]
    q, (log_lik, prior, criterion) = exact(case)
    assert 0.5 * np.abs(np.array(found["q"]) - q).sum() < 1e-6
    assert found["value"] == pytest.approx(objective(q, log_lik, prior, criterion), abs=1e-8)
    p = toy.predictive(q[None], toy.X)[0]
    distance = total_variation(p, toy.true_density(toy.X), toy.SPACING).value
    assert found["tv"] == pytest.approx(float(distance), abs=1e-6)


def test_without_a_regulariser_j_and_the_prediction_are_the_library_s(seen):
    """Then q concentrates on few points, slowly: which of two neighbours hardly matters to J."""
    q, problem = exact(CASES[0] | {"m": None, "beta": None, "t": 0.5})
    assert seen["limit"]["value"] == pytest.approx(objective(q, *problem), abs=1e-6)
    both = toy.predictive(np.stack([q, seen["limit"]["q"]]), toy.X)
    assert np.abs(both[0] - both[1]).max() < 1e-4


def test_jumps_without_a_regulariser_end_where_the_prior_s_start_does(tmp_path):
    """J and p_q are compared: q itself is hardly determined at t = 1."""
    seen = look(tmp_path, (HERE / "jumps.js").read_text("utf-8"), 1)
    assert seen["bad"] == []
    right = {
        jump["t"]: exact(CASES[0] | {"m": None, "beta": None, "t": jump["t"]})
        for jump in seen["jumps"]
    }
    for jump in seen["jumps"]:
        for name, t in (("q", jump["t"]), ("plain", 1)):
            q, problem = right[t]
            assert objective(np.array(jump[name]), *problem) < objective(q, *problem) + 1e-4
            both = toy.predictive(np.stack([q, jump[name]]), toy.X)
            assert np.abs(both[0] - both[1]).max() < 0.01
        assert ("did not settle" in jump["told"]) is not jump["settled"]


@pytest.mark.parametrize("i", range(len(CASES)))
def test_the_pull_is_that_of_figure_3(seen, i):
    criterion = Criterion(math.inf, CASES[i]["t"], math.inf)
    phi = gaussian_minimum(criterion, np.array(CASES[i]["points"]))
    assert seen["cases"][i]["phi"] == pytest.approx(phi, abs=1e-9)
    pull = contamination_term(criterion, np.array(-8.0), phi)
    assert seen["cases"][i]["pull"] == pytest.approx(float(pull), abs=1e-9)


def test_no_error(seen):
    assert seen["bad"] == []


def test_dots_are_moved_added_and_removed_by_key_and_finger(seen):
    assert seen["keys"] == {"x": -7.11, "now": "-7.11", "focus": True}
    assert seen["moving"] is True
    assert seen["drag"]["x"] == pytest.approx(-5.11, abs=0.02)
    assert seen["drag"]["changed"]
    assert seen["drag"]["settled"] < 1e-7  # exact again, once it is let go
    assert len(seen["tapped"]) == 6
    assert seen["tapped"][-1] == pytest.approx(5, abs=0.02)
    assert seen["removed"] == seen["tapped"][:-1]
    assert seen["left"] == 1  # the last one stays


def test_the_copied_call_gives_what_is_shown(seen):
    assert seen["python"] == seen["shown"]
    names = {}
    exec(seen["python"], names)
    assert 0.5 * np.abs(names["q"] - seen["q"]).sum() < 1e-6
    assert names["criterion"] == Criterion(7, 0.65, 7, 0.7)
    weights = names["predictive"] ** 0.35
    np.testing.assert_allclose(seen["weights"], weights, atol=1e-6)
    area = (np.array(seen["radii"]) - 3) ** 2
    np.testing.assert_allclose(area / area.max(), weights / weights.max(), atol=0.01)


def test_the_copied_call_prints_what_is_shown(seen, capsys):
    for python, tv, _ in seen["copied"]:
        exec(python, {})
        status, distance = capsys.readouterr().out.splitlines()
        assert status.startswith("Converged after")
        assert distance == f"TV from nu: {tv}"


def test_of_dots_within_reach_the_nearest_is_taken_of_equals_the_chosen(seen):
    assert seen["touched"] == list(range(8))
    assert seen["tie"] == [3, 4]


def test_a_new_dot_lies_on_no_other(seen):
    assert seen["full"] == [11, 2.7]  # the right is full at 12; one is at 1.7 already
    assert len(set(seen["places"])) == 20
    assert np.abs(seen["places"]).max() <= 12


def test_the_rings_of_dots_at_the_ends_are_whole(seen):
    assert min(seen["ring"]) >= 0


def test_buttons_that_can_do_nothing_say_why(seen):
    words = ["", "At most 20 dots.", "One dot must stay."]
    assert [one["title"] for one in seen["limits"]] == words
    assert [one["note"] for one in seen["limits"]] == words
    assert [one["add"] for one in seen["limits"]] == [False, True, False]
    assert [one["remove"] for one in seen["limits"]] == [False, False, True]


def test_many_dots_are_followed_or_the_picture_says_that_it_lags(seen):
    assert seen["follows"] > 40  # of 60 frames
    assert seen["slow"] == ["At most 20 dots. Still settling …", "At most 20 dots."]


def test_only_what_matters_is_said_not_to_have_settled(seen):
    assert seen["stalls"] == [True, False, False]
    assert "settle" not in seen["stalled"]
    assert "did not settle: a next step would move" in seen["endless"]["told"]


def test_what_is_read_has_no_raw_symbols_and_says_what_size_is(seen):
    assert not re.findall(r"\b\w_\w|∂_|T\(q\)", seen["text"])
    assert all("beside the heaviest" in lead for lead in seen["leads"])
    assert not seen["home"]  # a copy that was sent alone


def test_a_flip_says_what_it_did_and_the_scores_are_read_aloud(seen):
    wrong, right = seen["flips"]
    assert wrong.endswith(": wrong.")
    assert right.endswith(": right again.")
    live, words = seen["scores"]
    assert live == "polite"
    assert words.startswith("1 of 300 labels are wrong.")


def test_the_picture_is_told_in_words(seen):
    assert "5 points, at −8.2, −2.2, −0.9, 1.7, 2.4. With m = 7 and t = 0.65" in seen["words"]
    assert f"{float(seen['told']):.2f} away from ν" in seen["words"]
    assert len(seen["presets"]) == 4
    assert all(done and words > 100 for done, words in seen["presets"])


def test_words_of_one_dot_and_of_dots_that_weigh_the_same(seen):
    assert seen["alone"].startswith("1 point, at")
    assert "within 2 of the point at −8.2. At t = 1 all points weigh the same." in seen["tied"]


def test_a_preset_s_story_and_button_hold_only_until_something_is_changed(seen):
    assert [own["pressed"] for own in seen["own"]] == [0] * 4
    assert {own["story"][:30] for own in seen["own"]} == {"These are dots and settings of"}
    assert seen["unpressed"] == 0
    # Nor does the picture move below a finger when the story changes.
    assert len({own["tall"] for own in seen["own"]} | {tall for *_, tall in seen["copied"]}) == 1


def test_infinitely_many_members_have_no_regulariser(seen):
    assert seen["endless"]["beta"] is True
    assert "Criterion(m=np.inf, t=1, beta=np.inf" in seen["endless"]["python"]
    assert "# m = inf settles slowly" in seen["endless"]["python"]


def test_the_plane_s_fits_are_minima(seen):
    """t = 1 is convex: gradient 0 is the minimum. Below, a minimum that is lower than its start."""
    found = seen["plane"]
    x, sign = np.array(found["rows"]), 2 * np.array(found["labels"]) - 1

    def value_and_slope(theta, t):
        log_lik = -np.logaddexp(0, -sign * (x @ theta))
        pull = np.exp((1 - t) * log_lik) * expit(-sign * (x @ theta)) * sign
        value = 0.04 * theta @ theta - log_t_from_log(log_lik, t).sum()
        return value, 0.08 * theta - x.T @ pull

    plain, robust = (np.array(found[name]["theta"]) for name in ("plain", "robust"))
    for theta, t, told in ((plain, 1.0, found["plain"]), (robust, 0.4, found["robust"])):
        value, slope = value_and_slope(theta, t)
        assert told["value"] == pytest.approx(value, rel=1e-10)
        assert np.abs(slope).max() < 1e-4
    assert value_and_slope(robust, 0.4)[0] < value_and_slope(plain, 0.4)[0]


def test_wrong_labels_hurt_the_robust_fit_less(seen):
    plain, robust = seen["plane"]["scores"]
    assert np.sum(np.array(seen["plane"]["labels"]) != seen["plane"]["true"]) == 90  # 30 %
    assert robust["right"] > plain["right"]
    assert robust["loss"] < plain["loss"]
    assert (seen["flipped"], seen["clean"], seen["plane"]["hidden"]) == (1, 0, True)
