"""Parameters of statements, against DuckDB."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid

import duckdb
import pytest

import riverbed as rb

VALUES = [
    None,
    True,
    0,
    -1,
    2**31,
    -(2**31),
    2**70,
    1.5,
    float("inf"),
    "it's",
    "",
    b"\x00\xff",
    decimal.Decimal("-1.50"),
    decimal.Decimal("0.001"),
    dt.date(1969, 2, 28),
    dt.datetime(2024, 2, 29, 1, 2, 3, 456789),
    dt.time(23, 59, 59, 1),
    dt.timedelta(days=-1, microseconds=7),
    uuid.UUID(int=2**127 + 5),
    [1, None, 3],
    ["a", "b"],
    {"a": 1, "b": "x"},
    [{"a": dt.date(2024, 1, 1)}],
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value_and_type_are_duckdbs(value: object) -> None:
    query = "SELECT typeof($1) AS kind, $1 = $1 AS same, CAST($1 AS VARCHAR) AS written"
    want = duckdb.execute(query, [value]).fetchall()
    got = [tuple(row.values()) for row in rb.Session().sql(query, [value]).to_pylist()]
    assert got == want


def test_names_and_numbers() -> None:
    session = rb.Session()
    assert session.sql("SELECT $a + :B AS x", {"A": 1, "b": 2}).to_pylist() == [{"x": 3}]
    assert session.sql("SELECT ? AS x, ? AS y", params=(1, "z")).to_pylist() == [{"x": 1, "y": "z"}]
    session.sql("CREATE TABLE t (k INTEGER, seen TIMESTAMPTZ)")
    session.sql("INSERT INTO t VALUES (?, ?)", [1, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)])
    assert session.sql("SELECT k FROM t WHERE seen = ?", ["2024-01-01 00:00:00+00"]).to_pylist() == [{"k": 1}]


def test_a_view_keeps_its_values() -> None:
    session = rb.Session()
    session.sql("CREATE TABLE t AS SELECT 1 AS k")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE k >= ?", [2])
    session.sql("INSERT INTO t VALUES (2), (3)")
    assert session.sql("SELECT count(*) AS n FROM v").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("query", "params", "says"),
    [
        ("SELECT $1", None, r"the parameter \$1 has no value"),
        ("SELECT 1", [1], r"no parameter \$1"),
        ("SELECT ?", [1, 2], r"no parameter \$2"),
        ("SELECT ?", "x", "one value is a list of one"),
        ("SELECT ?", [object()], "a parameter cannot be a object"),
    ],
)
def test_mistakes_are_told(query: str, params: object, says: str) -> None:
    with pytest.raises(rb.RiverbedError, match=says):
        rb.Session().sql(query, params).to_pylist()  # type: ignore[arg-type]
