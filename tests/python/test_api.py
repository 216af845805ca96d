"""The Python API: sessions, queries, variables by name, functions, errors, closing."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import functools
import json
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import riverbed as rb
from riverbed import _arrow, _callbacks, _native
from riverbed.cli import main
from riverbed.connectors import _options
from riverbed.testing import Run

from .conftest import alive

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("default_session", "leaks_nothing")


@pytest.fixture(scope="session")
def default_session() -> rb.Session:
    """The session of the module-level functions, which stays open."""
    return rb.default_session()


@pytest.fixture
def session() -> Any:
    with rb.Session() as opened:
        yield opened


# --- results --------------------------------------------------------------------------------------------------------


def test_every_way_to_read_a_result_gives_the_same_rows(session: rb.Session) -> None:
    query = session.sql("SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(n, s) ORDER BY n")
    want = [{"n": 1, "s": "a"}, {"n": 2, "s": None}]
    assert query.to_pylist() == want
    assert query.to_arrow().to_pylist() == want
    assert query.to_polars().to_dicts() == want
    assert query.to_pandas().n.tolist() == [1, 2]
    assert pa.table(query).to_pylist() == want
    assert pa.RecordBatchReader.from_stream(query).read_all().to_pylist() == want
    assert pl.DataFrame(query).to_dicts() == want
    assert [row for batch in query.batches() for row in batch] == want
    assert query.columns == ["n", "s"]
    assert query.schema == [("n", "INTEGER"), ("s", "VARCHAR")]


def test_an_empty_result_has_its_columns(session: rb.Session) -> None:
    query = session.sql("SELECT 1 AS a, 'x' AS b WHERE false")
    assert query.to_arrow().column_names == ["a", "b"]
    assert query.to_arrow().num_rows == 0
    assert query.to_polars().columns == ["a", "b"]


def test_values_of_every_type_without_pyarrow(session: rb.Session) -> None:
    (row,) = session.sql(
        """SELECT true AS b, 1::TINYINT AS i8, 9223372036854775807 AS i64, 170141183460469231731687303715884105727 AS h,
                  0.5::DOUBLE AS f, 1.25 AS d, 'ü' AS s, DATE '2024-02-29' AS day,
                  TIMESTAMP '2024-01-01 12:34:56.789' AS ts, [1, NULL, 3] AS l, {'a': 1, 'b': 'x'} AS st, NULL AS n"""
    ).to_pylist()
    assert row == {
        "b": True, "i8": 1, "i64": 2**63 - 1, "h": 2**127 - 1, "f": 0.5, "d": decimal.Decimal("1.25"), "s": "ü",
        "day": dt.date(2024, 2, 29), "ts": dt.datetime(2024, 1, 1, 12, 34, 56, 789_000), "l": [1, None, 3],
        "st": {"a": 1, "b": "x"}, "n": None,
    }  # fmt: skip


def test_show_and_html(session: rb.Session, capsys: pytest.CaptureFixture[str]) -> None:
    query = session.sql("SELECT 'a<b' AS text, 42 AS answer")
    query.show()
    shown = capsys.readouterr().out
    assert "answer" in shown
    assert "a<b" in shown
    html = query._repr_html_()
    assert "a&lt;b" in html
    assert "a<b" not in html
    assert repr(query) == "<riverbed.Query: text VARCHAR, answer INTEGER>"


def test_explain_names_the_mode(session: rb.Session) -> None:
    query = session.sql("SELECT 1 AS a")
    assert "batch" in query.explain()
    assert "incremental" in query.explain(mode="incremental")
    with pytest.raises(rb.RiverbedUsageError, match="mode"):
        query.explain(mode="fast")


def test_a_statement_without_rows_has_run(session: rb.Session) -> None:
    done = session.sql("CREATE TABLE t (a INTEGER)")
    assert (done.columns, done.to_pylist(), done.to_arrow().num_columns, repr(done)) == (
        [],
        [],
        0,
        "<riverbed.Query: done>",
    )
    session.sql("INSERT INTO t VALUES (1), (2)")
    assert session.sql("SELECT sum(a) AS s FROM t").to_pylist() == [{"s": 3}]


def test_module_level_sql_uses_one_session() -> None:
    rb.sql("CREATE OR REPLACE TABLE module_level AS SELECT 7 AS a")
    assert rb.sql("SELECT a FROM module_level").to_pylist() == [{"a": 7}]
    rb.sql("DROP TABLE module_level")
    assert rb.default_session() is rb.default_session()


def test_files(session: rb.Session, tmp_path: pathlib.Path) -> None:
    pq.write_table(pa.table({"k": ["a", "b", "a"], "v": [1.0, 2.0, 3.0]}), tmp_path / "x.parquet")
    query = f"SELECT k, avg(v) AS v FROM '{tmp_path}/*.parquet' GROUP BY k ORDER BY k"
    assert session.sql(query).to_pylist() == [{"k": "a", "v": 2.0}, {"k": "b", "v": 2.0}]
    table = session.create_table("files", source=rb.Parquet(tmp_path / "x.parquet"))
    assert session.sql(f"SELECT count(*) AS n FROM {table}").to_pylist() == [{"n": 3}]
    assert table.columns == [("k", "VARCHAR"), ("v", "DOUBLE")]


# --- variables and tables -------------------------------------------------------------------------------------------


def test_local_variables_are_queried_by_name(session: rb.Session) -> None:
    arrow = pa.table({"a": [1, 2]})
    pandas = pd.DataFrame({"a": [3, 4]})
    polars = pl.DataFrame({"a": [5, 6]})
    for name, want in (("arrow", 3), ("pandas", 7), ("polars", 11)):
        assert session.sql(f"SELECT sum(a) AS s FROM {name}").to_pylist() == [{"s": want}]
    assert session.sql("SELECT count(*) AS n FROM arrow, pandas, polars").to_pylist() == [{"n": 8}]
    assert (len(arrow), len(pandas), len(polars)) == (2, 2, 2)


def test_a_variable_of_an_outer_frame_is_found() -> None:
    around = pa.table({"a": [1]})

    def inner() -> Any:
        return rb.sql("SELECT a FROM around").to_pylist()

    assert inner() == [{"a": 1}]
    assert len(around) == 1


def test_a_relation_of_the_session_goes_before_a_variable(session: rb.Session) -> None:
    t = pa.table({"a": ["variable"]})
    session.sql("CREATE TABLE t AS SELECT 'table' AS a")
    assert session.sql("SELECT a FROM t").to_pylist() == [{"a": "table"}]
    assert len(t) == 1


def test_a_variable_is_read_in_place(session: rb.Session) -> None:
    data = pa.table({"a": pa.array(range(10_000)), "s": pa.array([str(i) for i in range(10_000)])})
    got = session.sql("SELECT * FROM data").to_arrow()
    for name in ("a", "s"):
        sent = [b.address for b in data[name].chunk(0).buffers() if b is not None]
        assert [b.address for b in got[name].chunk(0).buffers() if b is not None] == sent


def test_pushed_rows_are_read_in_place(session: rb.Session) -> None:
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT", "s": "VARCHAR"})
    sent = pa.record_batch({"a": pa.array(range(1_000)), "s": pa.array([str(i) for i in range(1_000)])})
    with session.sql("SELECT s, a FROM s").subscribe() as changes:
        stream.push(sent.slice(100))
        stream.end()
        (batch,) = changes
    got = batch.to_arrow()
    del batch
    for name in ("a", "s"):
        at = [b.address for b in sent.column(name).buffers() if b is not None]
        assert [b.address for b in got.column(name).buffers() if b is not None] == at
    assert got.select(["a", "s"]).to_pylist() == sent.slice(100).to_pylist()
    del sent  # what was read holds the memory
    assert got.column("a").to_pylist() == list(range(100, 1_000))


def test_a_view_that_cannot_take_a_commit_fails_and_the_change_stands(session: rb.Session) -> None:
    session.sql("CREATE TABLE t (a INTEGER)")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT CAST(2147483640 + a AS INTEGER) AS b FROM t")
    session.sql("CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM t")
    session.sql("BEGIN")
    session.sql("INSERT INTO t VALUES (2), (200)")
    with pytest.raises(rb.RiverbedDataError, match='materialized view "v"') as raised:
        session.sql("COMMIT")
    assert "the change to the table stands" in (raised.value.hint or "")
    assert session.sql("SELECT a FROM t ORDER BY a").to_pylist() == [{"a": 2}, {"a": 200}]
    assert session.sql("SELECT n FROM other").to_pylist() == [{"n": 2}]
    session.sql("DELETE FROM t WHERE a = 200")  # passes the view over
    with pytest.raises(rb.RiverbedDataError, match="has failed"):
        session.sql("SELECT * FROM v").to_pylist()
    session.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT CAST(2147483640 + a AS INTEGER) AS b FROM t")
    assert session.sql("SELECT b FROM v").to_pylist() == [{"b": 2147483642}]


def test_metrics_are_documented(session: rb.Session) -> None:
    rows = rb.MemoryStream()
    session.create_stream("s", source=rows, schema={"a": "BIGINT"})
    rows.push([(1,)])
    with session.sql("SELECT a FROM s").subscribe() as changes:
        next(changes)
        metrics = changes.metrics()
    text = rb.PipelineHandle.metrics.__doc__ or ""
    assert [key for key in [*metrics, *metrics["sources"]["s"]] if f"`{key}`" not in text] == []


def test_the_index_of_pandas_is_no_column(session: rb.Session) -> None:
    whole = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "z", "y"]})
    frames = {
        "whole": whole,
        "filtered": whole[whole.b.isin(["x", "y"])],
        "sparse": whole.iloc[[0, 2]].sort_values("b", ascending=False),
        "named": whole.set_index(pd.Index([7, 8, 9], name="k")),
        "levels": whole.set_index([pd.Index(["p", "q", "r"]), pd.Index([7, 8, 9])]),
    }
    for name, frame in frames.items():
        want = frame.to_dict("records")
        assert session.sql("SELECT * FROM frame").to_pylist() == want, name
        assert session.create_table(name, source=frame).columns == [("a", "BIGINT"), ("b", "VARCHAR")], name
        assert session.sql(f"SELECT * FROM {name}").to_pylist() == want, name
        rows = rb.MemoryStream()
        session.create_stream(f"{name}_s", source=rows, schema={"a": "BIGINT", "b": "VARCHAR"})
        rows.push(frame)
        rows.end()
        with session.sql(f"SELECT * FROM {name}_s").subscribe() as changes:
            assert [{"a": row["a"], "b": row["b"]} for batch in changes for row in batch] == want, name
    frame = whole.set_index("b")
    assert session.sql("SELECT * FROM frame").columns == ["a"]


@pytest.mark.parametrize(
    ("what", "message", "hint"),
    [
        (pd.Series([1], name="a"), "this Series is one column", "to_frame"),
        (pl.Series("a", [1]), "this Series is one column", "to_frame"),
        (pa.array([1]), "this Int64Array is one column", "pyarrow.table"),
        (pa.chunked_array([[1]]), "this ChunkedArray is one column", "pyarrow.table"),
        (pl.LazyFrame({"a": [1]}), "a LazyFrame is a query that has not run", "collect"),
        (pd.DataFrame({"a": [1, "x"]}), "this DataFrame is no table: .*column a", "astype"),
        (pd.DataFrame(index=[1]), "this DataFrame has no columns", "at least one"),
    ],
)
def test_what_is_no_table_is_named_with_its_remedy(session: rb.Session, what: Any, message: str, hint: str) -> None:
    rows = rb.MemoryStream()
    session.create_stream("s", source=rows, schema={"a": "BIGINT"})
    for take in (rows.push, lambda source: session.create_table("t", source=source)):
        with pytest.raises(rb.RiverbedError, match=message) as raised:
            take(what)
        assert hint in (raised.value.hint or ""), take


def test_a_frame_may_change_when_it_was_pushed(session: rb.Session) -> None:
    pd, np = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    values = np.arange(1_000)
    stream.push(pd.DataFrame({"a": values}, copy=False))
    values[:] = 7
    stream.end()
    (batch,) = session.sql("SELECT a FROM s").subscribe()
    assert [row["a"] for row in batch] == list(range(1_000))


def test_a_push_into_a_closed_stream_holds_nothing(session: rb.Session) -> None:
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    stream.end()
    with pytest.raises(rb.RiverbedError):
        stream.push(pa.table({"a": range(1_000)}))


def test_a_result_is_handed_over_in_place(session: rb.Session) -> None:
    (batch,) = session.sql("SELECT 40 + 2 AS a").batches()
    assert batch.buffer_addresses()[0][1] == batch.to_arrow().column(0).buffers()[1].address


def test_a_result_outlives_variable_query_and_session() -> None:
    data = pa.table({"s": ["a", "b"]})
    session = rb.Session()
    query = session.sql("SELECT * FROM data")
    result = query.to_arrow()
    query.close()
    session.close()
    del data, query, session
    alive()
    assert result.to_pydict() == {"s": ["a", "b"]}


def test_what_a_statement_stores_outlives_the_variable(session: rb.Session) -> None:
    data = pa.table({"s": [str(i) for i in range(1000)]})
    session.sql("CREATE TABLE kept AS SELECT * FROM data")
    session.create_table("copied", source=data)
    session.sql("CREATE TABLE empty (s TEXT)")
    session.sql("INSERT INTO empty SELECT * FROM data")
    del data
    assert alive()["imports"] == 0
    for table in ("kept", "copied", "empty"):
        assert session.sql(f"SELECT count(*) AS n, max(s) AS m FROM {table}").to_pylist() == [{"n": 1000, "m": "999"}]


def test_tables_from_other_libraries(session: rb.Session) -> None:
    session.create_table("p", source=pl.DataFrame({"a": [1], "s": ["x"]}))
    session.create_table("q", source=pd.DataFrame({"a": [2], "s": ["y"]}))
    session.create_table("r", source=pa.record_batch({"a": [3], "s": ["z"]}))
    rows = session.sql("SELECT * FROM p UNION ALL SELECT * FROM q UNION ALL SELECT * FROM r ORDER BY a").to_pylist()
    assert [r["s"] for r in rows] == ["x", "y", "z"]
    with pytest.raises(rb.RiverbedUsageError, match="list"):
        session.create_table("bad", source=[1, 2])


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ("SELEC 1", rb.RiverbedSchemaError, "SELEC"),
        ("SELECT", rb.RiverbedSchemaError, ""),
        ("SELECT amunt FROM (SELECT 1 AS amount) t", rb.RiverbedSchemaError, 'did you mean "amount"'),
        ("SELECT uper('a')", rb.RiverbedSchemaError, 'did you mean "upper"'),
        ("SELECT * FROM nowhere", rb.RiverbedSchemaError, "nowhere"),
        ("SELECT 1 + 'x'::BLOB", rb.RiverbedSchemaError, ""),
        ("SELECT * FROM 'no/such/file.parquet'", rb.RiverbedSourceError, "file.parquet"),
    ],
)
def test_bad_sql_is_a_clear_error(session: rb.Session, query: str, error: type[rb.RiverbedError], says: str) -> None:
    with pytest.raises(error) as raised:
        session.sql(query).to_pylist()
    assert says in str(raised.value)


def test_an_error_knows_its_place(session: rb.Session) -> None:
    with pytest.raises(rb.RiverbedSchemaError) as raised:
        session.sql("SELECT 1,\n       amunt\nFROM (SELECT 1 AS amount) t")
    assert (raised.value.line, raised.value.column) == (2, 8)
    assert "       ^" in str(raised.value)
    assert raised.value.hint is not None


def test_a_value_that_cannot_be_computed(session: rb.Session) -> None:
    with pytest.raises(rb.RiverbedDataError):
        session.sql("SELECT 9223372036854775807 + a AS x FROM (SELECT 1 AS a) t").to_pylist()
    with pytest.raises((pa.ArrowException, OSError), match="RiverbedDataError"):
        pa.table(session.sql("SELECT 9223372036854775807 + a AS x FROM (SELECT 1 AS a) t"))


def test_bad_files(session: rb.Session, tmp_path: pathlib.Path) -> None:
    good = tmp_path / "good.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), good)
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "cut.parquet").write_bytes(good.read_bytes()[:-100])
    (tmp_path / "noise.parquet").write_bytes(bytes(range(256)) * 8)
    for name in ("empty", "cut", "noise"):
        with pytest.raises(rb.RiverbedSourceError, match=name):
            session.sql(f"SELECT * FROM '{tmp_path}/{name}.parquet'").to_pylist()


def test_settings(session: rb.Session) -> None:
    with rb.Session({"parallelism": 2}) as two:
        assert two.sql("SELECT 1 AS a").to_pylist() == [{"a": 1}]
    with pytest.raises(rb.RiverbedUsageError, match="parallelism"):
        rb.Session({"paralelism": 2})
    with pytest.raises(rb.RiverbedUsageError):
        rb.Session({"parallelism": "many"})


def test_what_cannot_be_exactly_once_is_refused(session: rb.Session, tmp_path: pathlib.Path) -> None:
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    with pytest.raises(rb.RiverbedExactlyOnceError, match="checkpoint_url is not set"):
        session.sql("SELECT a FROM s").sink(print, exactly_once=True)
    with rb.Session({"checkpoint_url": str(tmp_path)}) as durable:
        durable.create_stream("s", source=rb.MemoryStream(), schema={"a": "BIGINT"})
        with pytest.raises(rb.RiverbedExactlyOnceError, match="callable"):
            durable.sql("SELECT a FROM s").sink(print, exactly_once=True)
        with pytest.raises(rb.RiverbedExactlyOnceError, match="console"):
            durable.sql("SELECT a FROM s").sink(rb.Console(), exactly_once=True)
        with pytest.raises(rb.RiverbedExactlyOnceError, match="cannot be read again"):
            durable.sql("SELECT a FROM s").sink(rb.Kafka(topic="t", brokers="127.0.0.1:1"), exactly_once=True)


def test_wrong_arguments(session: rb.Session) -> None:
    with pytest.raises(rb.RiverbedUsageError, match="str"):
        session.sql(1)  # type: ignore[arg-type]
    with pytest.raises(rb.RiverbedUsageError, match="connector"):
        session.create_stream("s", source="kafka")  # type: ignore[arg-type]
    with pytest.raises(rb.RiverbedUsageError, match="kafka"):
        session.create_stream("s", source=rb.Connector("kafk", topic="t"))
    with pytest.raises(rb.RiverbedUsageError, match="sink"):
        session.sql("SELECT 1 AS a").sink(1)  # type: ignore[arg-type]


def test_a_live_query_has_no_final_result(session: rb.Session) -> None:
    session.create_stream("s", source=rb.MemoryStream(), schema={"a": "BIGINT"})
    for read in (rb.Query.to_arrow, rb.Query.to_polars, rb.Query.to_pandas, rb.Query.to_pylist, rb.Query.show):
        with pytest.raises(rb.RiverbedUsageError, match="subscribe"):
            read(session.sql("SELECT a FROM s"))


def test_a_stream_that_is_a_table_by_key(session: rb.Session) -> None:
    stock = rb.MemoryStream(upsert=True, primary_key=["shop", "item"])
    session.create_stream("stock", source=stock, schema={"item": "TEXT", "shop": "BIGINT", "n": "BIGINT"})
    stock.push([("pen", 1, 3), ("ink", 1, 1), ("pen", 1, 2), ("pen", 2, 9)])
    stock.delete([(1, "ink"), {"item": "pen", "shop": 2}, (7, "unknown")])
    stock.push(pa.table({"n": [4, None], "item": ["nib", "ink"], "shop": [3, 1], "__weight": [1, -1]}))

    def standing(query: str) -> list[tuple[Any, ...]]:  # how rows are cut into steps is left to the run
        rows: collections.Counter[tuple[Any, ...]] = collections.Counter()
        for batch in session.sql(query).subscribe(until="latest"):
            for row in batch:
                weight = row.pop("__weight")
                rows[tuple(row.values())] += weight
        return sorted(row for row, n in rows.items() for _ in range(n))

    assert standing("SELECT item, shop, n FROM stock") == [("nib", 3, 4), ("pen", 1, 2)]
    with pytest.raises(rb.RiverbedDataError, match="PRIMARY KEY"):
        stock.push([(None, 1, 3)])
    with pytest.raises(rb.RiverbedSchemaError, match="shop, item"):
        stock.delete([("pen",)])
    with pytest.raises(rb.RiverbedUsageError, match="list of keys"):
        stock.delete(["pen"])
    with pytest.raises(rb.RiverbedUsageError, match="list of keys"):
        stock.delete("pen")
    seen = rb.MemoryStream(upsert=True, primary_key="name")
    session.create_stream("seen", source=seen, schema={"name": "TEXT", "n": "BIGINT"})
    seen.push([("a", 1), ("b", 2), ("c", 3)])
    seen.delete(["a", ("b",)])
    assert standing("SELECT name FROM seen") == [("c",)]
    with pytest.raises(rb.RiverbedUsageError, match="upsert=True"):
        rb.MemoryStream().delete([("a",)])
    with pytest.raises(rb.RiverbedSchemaError, match="PRIMARY KEY"):
        session.create_stream("no_key", source=rb.MemoryStream(upsert=True), schema={"a": "BIGINT"})
    with Run(session.sql("SELECT sum(n) AS n FROM stock EMIT IMMEDIATE")) as run:
        run.push("stock", [("pen", 1, 3), ("pen", 2, 4)])
        run.step().shows("+1 7")
        run.crash(parallelism=3)
        run.push("stock", [{"item": "pen", "shop": 1, "__weight": -1}])
        run.step().shows("-1 7", "+1 4")


# --- functions ------------------------------------------------------------------------------------------------------


def test_a_function_gets_whole_columns(session: rb.Session) -> None:
    sizes: list[int] = []

    def plus(a: pa.Array, b: pa.Array) -> pa.Array:
        sizes.append(len(a))
        return pc.add(a, b)

    session.register_udf(plus, return_type="BIGINT")
    data = pa.table({"a": range(1000), "b": range(1000)})
    assert session.sql("SELECT sum(plus(a, b)) AS s FROM data").to_pylist() == [{"s": 999_000}]
    assert sum(sizes) == 1000
    assert len(data) == 1000


def test_a_query_with_a_function_streams_to_consumers_that_hold_the_gil(session: rb.Session) -> None:
    session.register_udf(lambda a: a, name="same", return_type="BIGINT")
    assert pl.DataFrame(session.sql("SELECT same(1::BIGINT) AS a")).to_dicts() == [{"a": 1}]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda a: 1 / 0, "ZeroDivisionError"),
        (lambda a: a[:-1], "values for"),
        (lambda a: pa.array(["x"] * len(a)), "BIGINT"),
        (lambda a: None, "TypeError"),
        (lambda: None, "TypeError"),
    ],
)
def test_a_function_that_goes_wrong_is_an_error_of_the_query(session: rb.Session, function: Any, says: str) -> None:
    session.register_udf(function, name="f", return_type="BIGINT")
    with pytest.raises(rb.RiverbedDataError, match=says) as raised:
        session.sql("SELECT f(a) FROM (VALUES (1), (2)) t(a)").to_pylist()
    if "Error" in says:
        assert type(raised.value.__cause__).__name__ == says
    assert session.sql("SELECT 1 AS a").to_pylist() == [{"a": 1}]


def test_a_function_may_call_its_session(session: rb.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT 1::BIGINT AS a")
    session.sql("CREATE TABLE log (a BIGINT)")

    def reads(a: pa.Array) -> pa.Array:
        session.sql("CREATE TABLE IF NOT EXISTS made (a BIGINT)")
        return pc.add(a, session.sql("SELECT count(*) AS n FROM t").to_pylist()[0]["n"])

    def writes(a: pa.Array) -> pa.Array:
        session.sql("INSERT INTO log VALUES (1)")
        return a

    session.register_udf(reads, return_type="BIGINT", deterministic=True)
    session.register_udf(writes, return_type="BIGINT", deterministic=True)
    session.sql("INSERT INTO t SELECT reads(a) FROM t")
    assert session.sql("SELECT a FROM t ORDER BY a").to_pylist() == [{"a": 1}, {"a": 2}]
    assert session.sql("SELECT sum(writes(a)) AS s FROM t").to_pylist() == [{"s": 3}]
    assert session.sql("SELECT count(*) AS n FROM log").to_pylist() == [{"n": 1}]
    for statement in (
        "INSERT INTO t SELECT writes(a) FROM t",
        "CREATE MATERIALIZED VIEW m AS SELECT writes(a) AS a FROM t",
    ):
        with pytest.raises(rb.RiverbedDataError, match="would wait for its own caller") as raised:
            session.sql(statement)
        assert isinstance(raised.value.__cause__, rb.RiverbedUsageError)
    assert session.sql("SELECT count(*) AS n FROM log").to_pylist() == [{"n": 1}]


def test_functions_are_listed(session: rb.Session) -> None:
    assert {"upper", "sum"} <= {f["name"] for f in session.functions()}


# --- streams --------------------------------------------------------------------------------------------------------


def test_a_subscription_shows_steps(session: rb.Session) -> None:
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"k": "TEXT", "v": "BIGINT"})
    query = session.sql("SELECT k, sum(v) AS total FROM s GROUP BY k EMIT IMMEDIATE")
    with query.subscribe() as changes:
        total: dict[tuple[Any, ...], int] = {}
        stream.push([("a", 1), ("b", 2)])
        stream.push([{"v": 3, "k": "a"}])
        stream.push(pa.table({"v": [4], "k": ["b"]}))
        stream.end()
        step = -1
        for batch in changes:
            assert batch.step is not None
            assert batch.step >= step
            step = batch.step
            assert batch.to_arrow().schema.metadata[b"riverbed.step"] == str(step).encode()
            for row in batch:
                key = (row["k"], row["total"])
                total[key] = total.get(key, 0) + row["__weight"]
        assert {k for k, n in total.items() if n} == {("a", 4), ("b", 6)}
        assert changes.ended
        assert changes.metrics()["rows_in"] == 4


def test_windows_close_on_the_watermark(session: rb.Session) -> None:
    stream = rb.MemoryStream(watermark="ts - INTERVAL '5 seconds'")
    session.create_stream("s", source=stream, schema={"k": "TEXT", "ts": "TIMESTAMP"})
    query = session.sql(
        """SELECT k, TUMBLE_START(ts, INTERVAL '1 minute') AS w, count(*) AS n
           FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK"""
    )
    with query.subscribe() as changes:
        stream.push([("a", "2024-01-01 00:00:10"), ("a", "2024-01-01 00:00:50"), ("a", "2024-01-01 00:01:10")])
        batch = next(changes)
        assert batch.to_pylist() == [{"k": "a", "w": dt.datetime(2024, 1, 1), "n": 2}]
        assert batch.watermark == dt.datetime(2024, 1, 1, 0, 1, 5, tzinfo=dt.UTC)


def test_a_pipeline_into_a_function(session: rb.Session) -> None:
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    seen: list[int] = []
    pipeline = session.sql("SELECT a FROM s WHERE a % 2 = 0 EMIT IMMEDIATE").sink(
        lambda b: seen.extend(r["a"] for r in b)
    )
    handle = pipeline.run(blocking=False)
    stream.push([(i,) for i in range(10)])
    stream.end()
    assert handle.wait(timeout=60)
    assert sorted(seen) == [0, 2, 4, 6, 8]
    assert handle.metrics()["state"] == "stopped"
    handle.stop()
    with pytest.raises(rb.RiverbedUsageError, match="started already"):
        pipeline.run()


def test_a_sink_function_that_raises_fails_the_pipeline(session: rb.Session) -> None:
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})

    def broken(batch: rb.Batch) -> None:
        raise ValueError("full")

    handle = session.sql("SELECT a FROM s EMIT IMMEDIATE").sink(broken).run(blocking=False)
    stream.push([(1,)])
    with pytest.raises(rb.RiverbedSourceError, match="ValueError: full"):
        handle.wait()
    assert handle.metrics()["state"] == "failed"


def test_a_pipeline_into_files(session: rb.Session, tmp_path: pathlib.Path) -> None:
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    stream.push([(i,) for i in range(100)])
    stream.end()
    session.sql("SELECT a FROM s WHERE a < 50").sink(rb.Parquet(tmp_path / "out")).run()
    assert session.sql(f"SELECT count(*) AS n FROM '{tmp_path}/out/*.parquet'").to_pylist() == [{"n": 50}]


def test_rows_that_do_not_fit_are_refused(session: rb.Session) -> None:
    stream = rb.MemoryStream()
    with pytest.raises(rb.RiverbedUsageError, match="create_stream"):
        stream.push([(1,)])
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    for rows in ([("x",)], [(1, 2)], [{"b": 1}], {"a": 1}, pa.table({"b": [1]}), pa.table({"a": ["x"]})):
        with pytest.raises(rb.RiverbedError):
            stream.push(rows)
    with pytest.raises(rb.RiverbedUsageError, match="belongs to a stream"):
        session.create_stream("other", source=stream, schema={"a": "BIGINT"})


@pytest.mark.parametrize("rows", [5, None, [5], ["x"], b"x", [None]])
def test_what_is_no_list_of_rows_is_refused(session: rb.Session, rows: Any) -> None:
    stream = rb.MemoryStream(upsert=True, primary_key=["a", "b"])
    session.create_stream("s", source=stream, schema={"a": "BIGINT", "b": "BIGINT"})
    with pytest.raises(rb.RiverbedUsageError, match="push takes a list of rows"):
        stream.push(rows)
    with pytest.raises(rb.RiverbedUsageError, match="list of keys"):
        stream.delete(rows)


def test_a_memory_stream_knows_its_options() -> None:
    with pytest.raises(rb.RiverbedUsageError, match="did you mean 'queue_rows'"):
        rb.MemoryStream(queue_row=5)
    with pytest.raises(rb.RiverbedUsageError, match="its options are queue_rows"):
        rb.MemoryStream(brokers="a:9092")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: rb.Parquet("x", compresion="zstd"),
            "Parquet has no option 'compresion'\nHint: did you mean 'compression'",
        ),
        (lambda: rb.Kafka("t", brokrs="a:9092"), "did you mean 'brokers'"),
        (lambda: rb.Connector("kafka", brokrs="a:9092"), "kafka has no option 'brokrs'"),
        (lambda: rb.Generator("nexmark", sed=1), "did you mean 'seed'"),
        (lambda: rb.Console(file="x"), "its options are stderr"),
        (lambda: rb.connectors.Callable(5), "takes a function, not int"),  # type: ignore[arg-type]
    ],
)
def test_a_connector_refuses_what_it_does_not_know(make: Any, says: str) -> None:
    with pytest.raises(rb.RiverbedUsageError, match=re.escape(says)):
        make()


def test_a_url_is_shown_without_its_password() -> None:
    shown = repr(rb.Postgres("t", url="postgres://me:s3same@h/db?sslmode=require&password=s3same", password="s3same"))
    assert shown == "Postgres(table='t', url='postgres://me:***@h/db?sslmode=require&password=***', password='***')"


@pytest.mark.parametrize("connector", _options.OPTIONS)
def test_the_options_of_a_connector_are_the_documented_ones(connector: str) -> None:
    page = ROOT.joinpath("docs", "connectors", f"{connector}.md").read_text()
    tables = re.findall(r"^\| option \|.*\n((?:\|.*\n)+)", page, re.M)
    documented = {name for table in tables for name in re.findall(r"^\| `(\w+)`", table, re.M)}
    assert set(_options.OPTIONS[connector].split()) == documented


def test_reserved_words_are_those_of_the_parser() -> None:
    source = ROOT.joinpath("core", "sql", "token.go").read_text()
    lists = [re.search(rf"^var {name} = words\(`([^`]*)`", source, re.M) for name in ("reserved", "functionOnly")]
    assert {word.lower() for found in lists if found for word in found[1].split()} == set(_arrow._RESERVED.split())


@pytest.mark.parametrize("name", ["order", "Two words", 'a "b"', "left", "größe", "x1"])
def test_any_name_will_do(session: rb.Session, name: str) -> None:
    source = rb.MemoryStream()
    stream = session.create_stream(name, source=source, schema={"select": "BIGINT", "b": 'STRUCT("from" BIGINT)'})
    source.push([(1, {"from": 2})])
    rows = [row for batch in stream.query().subscribe(until="latest") for row in batch]
    assert rows == [{"select": 1, "b": {"from": 2}, "__weight": 1}]
    with rb.Session() as other:
        table = other.create_table(name, source=pa.table({"a": [1]}))
        assert other.sql(f"SELECT * FROM {table}").to_pylist() == [{"a": 1}]
        assert pa.table(table).to_pylist() == [{"a": 1}]


def test_a_variable_that_is_no_table_is_named(session: rb.Session) -> None:
    numbers, lazy, column = [1, 2], pl.LazyFrame({"a": [1]}), pl.Series("a", [1])
    for query, says in (
        ("SELECT * FROM numbers", "the variable numbers is of the type list"),
        ("SELECT * FROM lazy", "collect()"),
        ("SELECT * FROM column_", "nothing is declared yet"),
    ):
        with pytest.raises(rb.RiverbedSchemaError, match="there is no table") as raised:
            session.sql(query)
        assert says in str(raised.value)
        assert raised.value.hint is not None
        assert says in raised.value.hint
        assert raised.value.line == 1
    with pytest.raises(rb.RiverbedUsageError, match="this Series is one column"):
        session.sql('SELECT * FROM "column"')
    assert (len(numbers), lazy.collect().height, len(column)) == (2, 1, 1)


@pytest.mark.parametrize("frame", [pd.DataFrame(), pl.DataFrame(), pa.table({})], ids=["pandas", "polars", "arrow"])
def test_a_table_without_columns_is_refused(session: rb.Session, frame: Any) -> None:
    with pytest.raises(rb.RiverbedUsageError, match="has no columns"):
        session.sql("SELECT * FROM frame")
    with pytest.raises(rb.RiverbedUsageError, match="has no columns"):
        session.create_table("t", source=frame)


def test_weights_say_what_is_wrong_with_them(session: rb.Session) -> None:
    stream = rb.MemoryStream(updating=True)
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    stream.push([{"a": 1, "__weight": 2}, {"a": 2}, (3,), (4, -1)])
    rows = [row for batch in session.sql("SELECT a FROM s").subscribe(until="latest") for row in batch]
    assert sorted((row["a"], row["__weight"]) for row in rows) == [(1, 2), (2, 1), (3, 1), (4, -1)]
    for weights, says in (
        (pa.array([1, None]), "is NULL in 1 of 2 rows"),
        (pa.array([1.0, 2.0]), "has the type int64, not float64"),
    ):
        with pytest.raises(rb.RiverbedUsageError, match=says):
            stream.push(pa.table({"a": [1, 2], "__weight": weights}))


def test_equal_names_lose_no_column(session: rb.Session, capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT 1 AS x, 2 AS x, 3 AS x_1, 4 AS X"
    want = {"x": 1, "x_1": 2, "x_1_1": 3, "X_2": 4}
    query = session.sql(text)
    assert query.to_pylist() == [want]
    assert [row for batch in query.batches() for row in batch] == [want]
    assert main(["sql", "--json", text]) == 0
    assert json.loads(capsys.readouterr().out) == want
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    with Run(session.sql("SELECT a AS x, a + 1 AS x FROM s")) as run:
        run.push("s", [(1,)])
        run.step().shows("+1 1 2")


def test_a_manual_run_refuses_what_comes_too_late_or_is_no_time(session: rb.Session) -> None:
    for name in ("a", "b"):
        session.create_stream(name, source=rb.MemoryStream(), schema={"v": "BIGINT"})
    with Run(session.sql("SELECT v FROM a UNION ALL SELECT v FROM b")) as run:
        run.push("a", [(1,)])
        run.end("a")
        with pytest.raises(rb.RiverbedUsageError, match='"a" has ended'):
            run.push("a", [(2,)])
        run.push("b", [(3,)])
        run.step().shows("+1 1", "+1 3")
        run.end()
        with pytest.raises(rb.RiverbedUsageError, match='"b" has ended'):
            run.push("b", [(4,)])
        run.crash()  # before the step that would have kept the end
        run.push("b", [(5,)])
        with pytest.raises(rb.RiverbedUsageError, match='"a" has ended'):
            run.push("a", [(6,)])
        run.step().shows("+1 5")
        with pytest.raises(rb.RiverbedUsageError, match=r"takes a datetime\.timedelta, not int"):
            run.advance(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"fn": 5, "return_type": "BIGINT"},
        {"fn": len, "return_type": 5},
        {"fn": len, "return_type": "BIGINT", "name": 5},
        {"fn": len, "return_type": "BIGINT", "arg_types": 5},
        {"fn": len, "return_type": "BIGINT", "arg_types": [5]},
        {"fn": functools.partial(len), "return_type": "BIGINT"},
    ],
)
def test_what_is_no_function_is_refused(session: rb.Session, arguments: Any) -> None:
    with pytest.raises(rb.RiverbedUsageError, match=r"takes|name"):
        session.register_udf(**arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.sql(5),
        lambda s: s.statements(5),
        lambda s: s.create_stream(5, source=rb.MemoryStream(), schema={"a": "BIGINT"}),
        lambda s: s.create_stream("s", source=5),
        lambda s: s.create_stream("s", source=rb.MemoryStream(), schema=5),
        lambda s: s.create_table("t", source=5),
        lambda s: s.sql("SELECT 1 AS a").sink(5),
        lambda s: s.sql("SELECT 1 AS a").subscribe(until=5),
        lambda s: s.sql("SELECT 1 AS a").explain(5),
        lambda s: rb.Session(config=5),
    ],
)
def test_arguments_of_another_kind_are_our_errors(session: rb.Session, call: Any) -> None:
    with pytest.raises(rb.RiverbedError):
        call(session)


def test_a_push_with_room_costs_no_thread(session: rb.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = rb.MemoryStream(queue_rows=10)
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    waited: list[object] = []
    real = _native.wait
    monkeypatch.setattr(_native, "wait", lambda *a: (waited.append(a), real(*a))[1])
    for i in range(10):
        stream.push([(i,)])
    assert waited == []
    done = threading.Thread(target=lambda: stream.push([(10,)]))
    done.start()  # finds the queue full, and waits for the reader
    changes = session.sql("SELECT a FROM s").subscribe()
    seen: list[int] = []
    for batch in changes:
        seen += [row["a"] for row in batch]
        if len(seen) == 11:
            break
    done.join()
    changes.close()
    assert sorted(seen) == list(range(11))


# --- closing and leaking --------------------------------------------------------------------------------------------


def test_nothing_works_after_close() -> None:
    session = rb.Session()
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"a": "BIGINT"})
    live, batch = session.sql("SELECT a FROM s"), session.sql("SELECT 1 AS a")
    changes = live.subscribe()
    pipeline = live.sink(print)
    session.close()
    session.close()
    for call in (
        lambda: session.sql("SELECT 1"),
        lambda: session.create_table("t", source=pa.table({"a": [1]})),
        lambda: session.register_udf(len, return_type="BIGINT"),
        lambda: live.subscribe(),
        lambda: pipeline.run(),
    ):
        with pytest.raises(rb.RiverbedUsageError, match="closed"):
            call()
    batch.close()
    with pytest.raises(rb.RiverbedUsageError, match="closed"):
        batch.to_pylist()
    changes.close()
    with pytest.raises(rb.RiverbedUsageError, match="closed"):
        next(changes)


def test_two_hundred_rounds_leak_nothing() -> None:
    def one_round() -> None:
        data = pa.table({"k": ["a", "b"] * 50, "v": range(100)})
        with rb.Session() as session:
            stream = rb.MemoryStream()
            session.create_stream("s", source=stream, schema={"k": "TEXT", "v": "BIGINT"})
            session.sql("CREATE TABLE t AS SELECT * FROM data")
            session.register_udf(lambda a: a, name="same", return_type="BIGINT", deterministic=True)
            assert session.sql("SELECT sum(same(v)) AS s FROM t").to_pylist() == [{"s": 4950}]
            assert session.sql("SELECT k FROM data").to_arrow().num_rows == 100
            next(session.sql("SELECT * FROM data").batches())  # read in part
            stream.push(data)
            subscription = session.sql("SELECT k, sum(v) AS s FROM s GROUP BY k EMIT IMMEDIATE").subscribe()
            next(subscription)
            with pytest.raises(rb.RiverbedSchemaError):
                session.sql("SELECT nothing FROM data")
            session.sql("DROP TABLE t")

    for _ in range(10):
        one_round()
    before = alive()
    for _ in range(200):
        one_round()
    after = alive()
    assert {k: after[k] for k in after} == {k: before[k] for k in before}


def test_memory_is_given_back_by_collection_alone() -> None:
    before = alive()
    session = rb.Session()
    result = iter(session.sql("SELECT * FROM range(1000000)").batches())
    next(result)
    kept = session.sql("SELECT 'x' AS s").to_arrow()
    del session, result
    assert alive()["handles"] == before["handles"]
    assert kept.to_pylist() == [{"s": "x"}]


def test_a_sink_function_goes_with_its_pipeline(session: rb.Session) -> None:
    query = session.sql("SELECT 1 AS a")
    before = len(_callbacks._functions)
    rows: list[int] = []
    for _ in range(200):
        query.sink(lambda batch: rows.extend(row["a"] for row in batch)).run()
    assert rows == [1] * 200
    with pytest.raises(rb.RiverbedExactlyOnceError):
        query.sink(rows.append, exactly_once=True)
    assert len(_callbacks._functions) == before
    assert not session._callbacks.used


# --- signals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "work",
    [
        'session.sql("SELECT count(*) FROM range(999999) a(x), range(999999) b(y) WHERE at(x) * y < 0").to_pylist()',
        'session.sql("SELECT a FROM s EMIT IMMEDIATE").sink(at).run()',
        'for batch in session.sql("SELECT a FROM s EMIT IMMEDIATE").subscribe(): at(batch)',
    ],
    ids=["query", "pipeline", "subscription"],
)
def test_ctrl_c_stops_what_runs(work: str) -> None:
    # The work itself says that it is under way. Nobody would wait for its end: the query has 10^12 pairs to look at,
    # the stream never ends. So that the program goes on behind it, and no call is left, is the cancel's doing.
    program = f"""
        import itertools, threading, riverbed as rb
        calls = itertools.count()

        def at(value):
            if next(calls) == 0:
                print("ready", flush=True)
            return value

        session = rb.Session()
        session.register_udf(at, name="at", return_type="BIGINT")
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema={{"a": "BIGINT"}})
        rows.push([(1,)])
        try:
            {work}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        for thread in threading.enumerate():
            if thread.name == "riverbed-call":
                thread.join()
        print(session.sql("SELECT 1 AS a").to_pylist())
        """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.read() == "interrupted\n[{'a': 1}]\n"
    assert child.wait() == 0


def test_queries_run_in_many_threads(session: rb.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT * FROM range(10000)")
    failures: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for _ in range(10):
                rows = session.sql(f"SELECT count(*) AS n FROM t WHERE range % 8 = {i}").to_pylist()
                assert rows == [{"n": 1250}]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


def test_a_parquet_encoding_that_is_not_read_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "fixed.parquet"
    table = pa.table({"a": pa.array([b"abcde"], pa.binary(5)), "b": [1]})
    pq.write_table(table, path, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY", "b": "PLAIN"})
    with pytest.raises(rb.RiverbedUnsupportedError, match=r'column "a" .* DELTA_BYTE_ARRAY'):
        rb.sql(f"SELECT * FROM '{path}'").to_pylist()
    assert rb.sql(f"SELECT b FROM '{path}'").to_pylist() == [{"b": 1}]
