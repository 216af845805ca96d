"""UUIDs cross the boundary as Arrow's extension type arrow.uuid, at any depth."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import riverbed as rb

ONE = uuid.UUID("550e8400-e29b-41d4-a716-446655440000")
QUERY = f"SELECT '{ONE}'::UUID AS u, ['{ONE}'::UUID, NULL] AS l, {{'a': '{ONE}'::UUID}} AS s, NULL::UUID AS n"


@pytest.fixture
def session() -> Iterator[rb.Session]:
    with rb.Session() as s:
        yield s


def test_pyarrow_reads_uuids(session: rb.Session) -> None:
    table = session.sql(QUERY).to_arrow()
    assert table.schema.types == [pa.uuid(), pa.list_(pa.uuid()), pa.struct([("a", pa.uuid())]), pa.uuid()]
    assert table.to_pylist() == [{"u": ONE, "l": [ONE, None], "s": {"a": ONE}, "n": None}]
    assert session.sql(QUERY).to_pylist() == table.to_pylist()


def test_others_read_uuids(session: rb.Session) -> None:
    theirs = duckdb.from_arrow(session.sql(QUERY).to_arrow()).query(
        "t", "SELECT typeof(u), u, typeof(l), typeof(s) FROM t"
    )
    assert theirs.fetchall() == [("UUID", ONE, "UUID[]", "STRUCT(a UUID)")]
    frame = session.sql(f"SELECT '{ONE}'::UUID AS u").to_pandas()
    assert frame["u"].tolist() == [ONE]
    assert session.sql(f"SELECT '{ONE}'::UUID AS u").to_polars()["u"].to_list() == [ONE.bytes]  # Polars has no UUID


def test_uuids_come_back(session: rb.Session) -> None:
    session.create_table("ours", session.sql(QUERY).to_arrow())
    session.create_table("theirs", pa.table({"u": pa.array([ONE.bytes, None], pa.uuid())}))
    assert session.sql("SELECT typeof(u) AS u, typeof(l) AS l, typeof(s) AS s FROM ours").to_pylist() == [
        {"u": "UUID", "l": "UUID[]", "s": "STRUCT(a UUID)"}
    ]
    assert session.sql("SELECT u, typeof(u) AS t FROM theirs WHERE u IS NOT NULL").to_pylist() == [
        {"u": ONE, "t": "UUID"}
    ]


def test_views_give_uuids(session: rb.Session) -> None:
    session.sql("CREATE TABLE t (u UUID)")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT u, count(*) AS n FROM t GROUP BY u")
    session.sql(f"INSERT INTO t VALUES ('{ONE}'), ('{ONE}')")
    assert session.sql("FROM v").to_arrow().to_pylist() == [{"u": ONE, "n": 2}]
