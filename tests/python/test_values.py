"""Python values in rows that are pushed: what they become, and what is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest

import riverbed as rb
from riverbed.connectors.memory import pieces

DECIMAL = decimal.Decimal
EAST = dt.timezone(dt.timedelta(hours=2))


@pytest.fixture
def session() -> Any:
    with rb.Session() as opened:
        yield opened


def pushed(session: rb.Session, kind: str, *values: Any) -> list[Any]:
    """What comes out of a stream with a column of the type, in order."""
    stream = rb.MemoryStream()
    session.create_stream("pushed", source=stream, schema={"n": "BIGINT", "v": kind})
    stream.push(list(enumerate(values)))
    rows = [row for batch in session.sql("SELECT n, v FROM pushed").subscribe(until="latest") for row in batch]
    session.sql("DROP STREAM pushed")
    return [row["v"] for row in sorted(rows, key=lambda row: row["n"])]


def cast(session: rb.Session, literal: str, kind: str) -> Any:
    return session.sql(f"SELECT ({literal})::{kind} AS v").to_pylist()[0]["v"]


@pytest.mark.parametrize("text", ["19.999", "19.995", "19.985", "-19.985", "1e2", " 12 ", "999.994", "1.005", "-0.125"])
def test_decimals_are_rounded_as_cast_does(session: rb.Session, text: str) -> None:
    want, of_double = (cast(session, literal, "DECIMAL(5,2)") for literal in (f"'{text}'", f"'{text}'::DOUBLE"))
    got = pushed(session, "DECIMAL(5,2)", text, DECIMAL(text.strip()), float(text), np.float64(text))
    assert got == [want, want, of_double, of_double]


def test_decimals_keep_what_they_hold(session: rb.Session) -> None:
    whole = 10**38 - 1
    assert pushed(session, "DECIMAL(38,0)", whole, -whole, None) == [DECIMAL(whole), DECIMAL(-whole), None]
    assert pushed(session, "DECIMAL(5,2)", 3, np.int32(4), DECIMAL("1E-999999")) == [3, 4, 0]


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("DECIMAL(5,2)", 123456789, "does not fit"),
        ("DECIMAL(5,2)", "999.995", "does not fit"),
        ("DECIMAL(5,2)", 1e300, "does not fit"),
        ("DECIMAL(5,2)", "1e999999999", "does not fit"),
        ("DECIMAL(5,2)", float("nan"), "no finite number"),
        ("DECIMAL(5,2)", DECIMAL("nan"), "no finite number"),
        ("DECIMAL(5,2)", "nan", "no finite number"),
        ("DECIMAL(5,2)", float("-inf"), "no finite number"),
        ("DECIMAL(5,2)", "x", "'x' (str)"),
        ("BIGINT", 2.5, "2.5 (float)"),
        ("BIGINT", "1", "'1' (str)"),
        ("BIGINT", 2**63, "does not fit"),
        ("UTINYINT", -1, "does not fit"),
        ("FLOAT", 1e300, "does not fit"),
        ("DOUBLE", "1.0", "'1.0' (str)"),
        ("BOOLEAN", "hello", "'hello' (str)"),
        ("BOOLEAN", 2, "2 (int)"),
        ("BLOB", 5, "5 (int)"),
        ("VARCHAR", 1, "1 (int)"),
        ("VARCHAR", "\ud800", "does not fit"),
        ("DATE", dt.datetime(2026, 1, 1, 1), "time of day"),
        ("DATE", "2026", "'2026' (str)"),
        ("TIMESTAMP", 1.5, "1.5 (float)"),
        ("TIMESTAMP", "soon", "'soon' (str)"),
        ("TIME", dt.time(1, tzinfo=EAST), "time zone"),
        ("UUID", "x", "'x' (str)"),
        ("INTERVAL", "1 day", "'1 day' (str)"),
        ("HUGEINT", 2**127, "does not fit"),
        ("INTEGER[]", "x", "'x' (str)"),
        ("INTEGER[]", [1, 2**40], "1099511627776 in it does not fit"),
        ("STRUCT(a INTEGER)", {"b": 1}, "no field 'b'"),
        ("MAP(VARCHAR, INTEGER)", {None: 1}, "a key is None"),
    ],
)
def test_what_does_not_fit_names_column_row_value_and_type(
    session: rb.Session, kind: str, value: Any, says: str
) -> None:
    with pytest.raises(rb.RiverbedSchemaError) as raised:
        pushed(session, kind, None, value)
    assert f"column 'v' takes {kind}, and rows[1] has " in str(raised.value)
    assert says in str(raised.value)


@pytest.mark.parametrize("text", ["2026-01-01T02:00:00+02:00", "2026-01-01 02:00:00Z", "1969-12-31 23:59:59.5"])
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS"])
def test_texts_of_moments_are_read_as_cast_does(session: rb.Session, kind: str, text: str) -> None:
    assert pushed(session, kind, text) == [cast(session, f"'{text}'", kind)]


def test_a_datetime_with_a_zone_is_a_moment(session: rb.Session) -> None:
    at = dt.datetime(2026, 1, 1, 2, tzinfo=EAST)
    assert pushed(session, "TIMESTAMP", at) == [dt.datetime(2026, 1, 1)]
    assert pushed(session, "TIMESTAMP WITH TIME ZONE", at) == [at]


@pytest.mark.parametrize(
    ("kind", "value", "want"),
    [
        ("BIGINT", 2.0, 2),
        ("BIGINT", np.int8(4), 4),
        ("BIGINT", DECIMAL(7), 7),
        ("DOUBLE", np.float32(0.5), 0.5),
        ("DOUBLE", 1, 1.0),
        ("BOOLEAN", np.True_, True),
        ("TIMESTAMP", dt.date(2026, 1, 2), dt.datetime(2026, 1, 2)),
        ("TIMESTAMP", np.datetime64("2026-01-02T00:00:00.123456789"), dt.datetime(2026, 1, 2, 0, 0, 0, 123456)),
        ("TIMESTAMP", pd.Timestamp("2026-01-02"), dt.datetime(2026, 1, 2)),
        ("TIMESTAMP", pd.NaT, None),
        ("DATE", dt.datetime(2026, 1, 2), dt.date(2026, 1, 2)),
        ("DATE", np.datetime64("2026-01-02"), dt.date(2026, 1, 2)),
        ("BIGINT", pd.NA, None),
        ("FLOAT", 0.5, 0.5),
        ("FLOAT", 0.1, 0.10000000149011612),
        ("TIME", dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 4)),
        ("TIME", "01:02:03.5", dt.time(1, 2, 3, 500_000)),
        ("UUID", uuid.UUID(int=2**127 + 5), uuid.UUID(int=2**127 + 5)),
        ("UUID", str(uuid.UUID(int=7)), uuid.UUID(int=7)),
        ("INTERVAL", dt.timedelta(days=2, seconds=5), dt.timedelta(days=2, seconds=5)),
        ("INTERVAL", dt.timedelta(seconds=-5), dt.timedelta(seconds=-5)),
        ("INTERVAL", {"months": 14, "days": 1}, {"months": 14, "days": 1, "nanoseconds": 0}),
        ("HUGEINT", -(2**127), -(2**127)),
        ("UHUGEINT", 2**128 - 1, 2**128 - 1),
        ("JSON", '{"a": 1}', '{"a": 1}'),
        ("INTEGER[]", [1, None, 2], [1, None, 2]),
        ("INTEGER[]", np.array([1, 2]), [1, 2]),
        ("DECIMAL(5,2)[][]", [["1.005"], None, []], [[DECIMAL("1.01")], None, []]),
        ('STRUCT(a INTEGER, "b ""c, d" VARCHAR[])', {"a": 1, 'b "c, d': ["x"]}, {"a": 1, 'b "c, d': ["x"]}),
        ("STRUCT(a INTEGER, b VARCHAR)", (1, None), {"a": 1, "b": None}),
        ("STRUCT(a HUGEINT, b UUID)[]", [(5, uuid.UUID(int=1))], [{"a": 5, "b": uuid.UUID(int=1)}]),
        ("MAP(VARCHAR, DECIMAL(5,2))", {"a": "1.5", "b": None}, {"a": DECIMAL("1.50"), "b": None}),
    ],
)
def test_values_of_every_type(session: rb.Session, kind: str, value: Any, want: Any) -> None:
    got = pushed(session, kind, None, value, None)
    assert got == [None, want, None]
    assert type(got[1]) is type(want)


def test_a_type_without_python_values_says_what_to_do() -> None:
    with pytest.raises(rb.RiverbedUsageError, match=r"cannot be turned into SECRET\nHint: hand over an Arrow table"):
        list(pieces([(1,)], [("a", "SECRET")]))


def test_a_watermark_that_is_no_moment_is_our_error(session: rb.Session) -> None:
    stream = rb.MemoryStream(event_time="ts")
    session.create_stream("s", source=stream, schema={"ts": "TIMESTAMP"})
    for wrong in ("soon", 1.5, object()):
        with pytest.raises(rb.RiverbedUsageError, match="no moment in time"):
            stream.advance(wrong)  # type: ignore[arg-type]
