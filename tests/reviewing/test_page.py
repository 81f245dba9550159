"""The page's files: colours that can be told apart, and nothing from elsewhere."""

import re
from importlib.resources import files

import pytest

STATIC = files("mtbayes.reviewing") / "static"
STYLE = (STATIC / "style.css").read_text(encoding="utf-8")


def colours(scheme):
    """The named colours of a scheme; the dark one changes some of the light one."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    text = light if scheme == "light" else light + dark
    return dict(re.findall(r"--(\w+): (#\w+)", text))


def luminance(colour):
    """By the W3C's definition."""
    digits = colour.removeprefix("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme):
    found = colours(scheme)
    for ground in ("page", "card"):
        for ink in ("ink", "quiet", "good", "bad", "blue", "part"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
    assert contrast(found["on"], found["blue"]) >= 4.5
    assert contrast(found["on"], found["bad"]) >= 4.5
    assert contrast(found["part"], found["mark"]) >= 4.5
    assert contrast(found["ink"], found["mark"]) >= 4.5


def test_nothing_comes_from_elsewhere_and_text_stays_text():
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text
        for risky in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert risky not in text, file.name
