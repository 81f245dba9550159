"""Dates in text: days that exist, one order of day and month for a file."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbayes.data import dates
from mtbayes.data.coder import Seen
from mtbayes.data.schema import learn_table
from mtbayes.errors import InvalidInput

N = 60


def schema_of(cells, **others):
    table = pa.table({"day": cells, "y": ["a", "b"] * (len(cells) // 2), **others})
    return learn_table(table, "y")


def days(*when):
    return [(d - date(1970, 1, 1)).days for d in when]


@pytest.mark.parametrize(
    ("cell", "style"),
    [
        ("2020-02-30", "%Y-%m-%d"),
        ("31.04.2020", "%d.%m.%Y"),
        ("29/02/2021", "%d/%m/%Y"),
        ("2020-00-10", "%Y-%m-%d"),
        ("2020-13-10", "%Y-%m-%d"),
        ("2020-12-00", "%Y-%m-%d"),
        ("1.2.3", "%d.%m.%Y"),
        ("01.02.99", "%d.%m.%Y"),
        ("2020-01-01T25:00", "%Y-%m-%d"),
        ("2020-01-01 10:60", "%Y-%m-%d"),
        ("2020-01-01 13:00 pm", "%Y-%m-%d"),
        ("2020-01-01 noon", "%Y-%m-%d"),
    ],
)
def test_what_is_no_date_is_not_made_one(cell, style):
    found, strays = dates.read(pa.array([cell, None]), style)
    assert np.isnan(found).all()
    assert strays == 1


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.sampled_from(dates.STYLES[:8]))
def test_every_day_is_read_as_itself(day, style):
    text = style
    for part, value in (("%Y", f"{day.year:04d}"), ("%m", f"{day.month:02d}"), ("%d", day.day)):
        text = text.replace(part, str(value))
    assert dates.read(pa.array([text]), style)[0].tolist() == days(day)


def test_years_of_two_digits_are_of_our_time_and_told_of():
    found, _ = dates.read(pa.array(["01.02.99", "01.02.20", "01.02.68", "01.02.69"]), "%d.%m.%y")
    years = [1999, 2020, 2068, 1969]
    assert found.tolist() == days(*(date(year, 2, 1) for year in years))
    schema, coded = schema_of([f"{1 + i % 28:02d}.{1 + i % 12:02d}.{i:02d}" for i in range(N)])
    assert schema.columns[0].style == "%d.%m.%y"
    assert "1969 to 2068" in coded.notes[0]


@pytest.mark.parametrize(
    ("cell", "when"),
    [
        ("2020-03-01 13:30", datetime(2020, 3, 1, 13, 30, tzinfo=UTC)),
        ("2020-03-01T01:30:15.5 PM", datetime(2020, 3, 1, 13, 30, 15, 500_000, tzinfo=UTC)),
        ("2020-03-01 12:30 am", datetime(2020, 3, 1, 0, 30, tzinfo=UTC)),
        ("2020-03-01T01:30:00Z", datetime(2020, 3, 1, 1, 30, tzinfo=UTC)),
        (
            "2020-03-01T01:30:00+05:30",
            datetime(2020, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        ),
    ],
)
def test_the_time_of_day(cell, when):
    found, _ = dates.read(pa.array([cell, cell]), "%Y-%m-%d")
    np.testing.assert_allclose(found, when.timestamp() / 86400, rtol=1e-12)


def test_the_order_is_that_of_the_whole_file():
    early = [f"{1 + i % 12:02d}/{1 + i % 9:02d}/2020" for i in range(N)]
    american = [f"{1 + i % 12:02d}/{1 + i % 28:02d}/2020" for i in range(N)]
    schema, coded = schema_of(early)
    assert schema.columns[0].style == "%d/%m/%Y"
    assert "'day' may as well be the other way round" in coded.notes[0]
    schema, coded = schema_of(early, other=american)
    assert [c.style for c in schema.columns] == ["%m/%d/%Y"] * 2
    assert coded.notes == ()


def test_a_date_the_other_way_round_is_refused_with_its_row():
    cells = [f"{1 + i % 12:02d}/{1 + i % 28:02d}/2020" for i in range(N)]
    with pytest.raises(InvalidInput, match=r"month/day/year.*'31/12/2020' in row 8"):
        schema_of([*cells[:7], "31/12/2020", *cells[8:]])
    schema, _ = schema_of(cells)
    with pytest.raises(InvalidInput, match=r"'31/12/2020' in row 2"):
        schema.code(pa.table({"day": ["12/31/2020", "31/12/2020"]}))


def test_a_day_that_does_not_exist_counts_as_missing():
    cells = [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    seen = Seen.nothing()
    schema, _ = schema_of([*cells[:-1], "2020-02-30"])
    found = schema.code(pa.table({"day": ["2020-02-30", "2020-03-01"]}), seen=seen)
    assert found[:, -1].tolist() == [1, 0]
    assert seen.strays == {"day": 1}
    assert "'day' cannot be read as dates as" in seen.notes[0]
