"""Arrow data that are pushed: they are read where they lie, in whatever layout they come, and given back."""

from __future__ import annotations

import datetime as dt
import decimal
import random
import re
import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import riverbed as rb
from riverbed.connectors import _columns

pytestmark = pytest.mark.usefixtures("leaks_nothing")

ROWS = 600  # fewer than 256 are copied


def spread(kind: pa.DataType, *values: Any) -> pa.Array:
    chance = random.Random(1)
    return pa.array([chance.choice(values) for _ in range(ROWS)], kind)


# In the engine's own layouts, without children.
FLAT: dict[str, pa.Array] = {
    "bigint": pa.array(range(ROWS), pa.int64()),
    "bigint with nulls": spread(pa.int64(), None, 0, -(2**63), 2**63 - 1),
    "all null": pa.nulls(ROWS, pa.int32()),
    "tinyint": spread(pa.int8(), None, -128, 127),
    "double": spread(pa.float64(), 0.0, -0.0, float("inf"), 1.5, None),
    "boolean": spread(pa.bool_(), True, False, None),
    "boolean without nulls": spread(pa.bool_(), True, False),
    "text": spread(pa.string(), "", "a", "longer than twelve bytes", None),
    "text, all empty": spread(pa.string(), ""),
    "blob": spread(pa.binary(), b"", b"\x00", None),
    "date": spread(pa.date32(), dt.date(1900, 1, 1), None),
    "time": spread(pa.time64("us"), dt.time(1, 2, 3, 4), None),
    "timestamp": spread(pa.timestamp("us"), dt.datetime(1969, 12, 31, 23), None),
    "timestamp of a zone": spread(pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1), None),
    "decimal": spread(pa.decimal128(9, 2), decimal.Decimal("-99.99"), None),
    "numpy": pa.array(np.arange(ROWS)),
}
OTHER: dict[str, pa.Array] = {
    "timestamp of seconds": spread(pa.timestamp("s"), dt.datetime(1969, 12, 31, 23), None),
    "uuid": pa.array([bytes(range(16)), None] * (ROWS // 2), pa.uuid()),
    "list": spread(pa.list_(pa.int64()), [1, None], [], None),
    "struct": spread(pa.struct([("x", pa.int64()), ("y", pa.string())]), {"x": 1, "y": None}, None),
    "large text": spread(pa.large_string(), "a", "", None),
    "text view": spread(pa.string_view(), "a", "longer than twelve bytes", None),
    "dictionary": spread(pa.string(), "a", "b", None).dictionary_encode(),
}


def table(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return pa.record_batch(list(columns.values()), names=list(columns))


def values(array: Any) -> list[str]:
    return [repr(v) for v in array.to_pylist()]


def follow(shape: pa.RecordBatch, *pushes: pa.Table | pa.RecordBatch | pl.DataFrame) -> dict[str, list[str]]:
    """Push into a stream of the columns of shape; return what a subscriber reads."""
    out: dict[str, list[str]] = {name: [] for name in shape.schema.names}
    with rb.Session() as session:
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema=dict(session.sql("SELECT * FROM shape").schema))
        with session.sql("SELECT * FROM s").subscribe() as changes:
            for push in pushes:
                rows.push(push)
            rows.end()
            for batch in changes:
                for name, column in zip(shape.schema.names, batch.to_arrow().columns, strict=False):
                    out[name] += values(column)
        rows.__init__()  # type: ignore[misc] # what it knows of the schema goes now
    return out


def plain(column: pa.Array) -> pa.Array:
    """The values of a column as the engine knows them."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    return column if column.type == pa.uuid() else getattr(column, "storage", column)


@pytest.mark.parametrize("columns", [FLAT, OTHER], ids=["flat", "other"])
def test_pushed_arrays_keep_their_values(columns: dict[str, pa.Array]) -> None:
    whole = table(columns)
    slices = [whole.slice(0, 300), whole.slice(300, 257), whole.slice(557), whole.slice(5, 0)]
    want = {name: values(plain(column)) for name, column in columns.items()}
    assert follow(whole, *slices) == want
    assert follow(whole, pa.Table.from_batches([whole, whole]), whole) == {n: v * 3 for n, v in want.items()}


def test_layouts_may_change_between_pushes() -> None:
    text, number = FLAT["text"], pa.array(range(ROWS), pa.int64())
    batches = [
        table({"n": number, "c": column})
        for column in (text, text.cast(pa.large_string()), text.dictionary_encode(), text, text.cast(pa.string_view()))
    ]
    got = follow(batches[0], *batches, batches[0].select(["c", "n"]), batches[0])
    assert got == {"n": values(number) * 7, "c": values(text) * 7}


def pushed(sql: str, *columns: Any) -> list[Any]:
    """What a stream of a column `a` of a SQL type makes of columns that are pushed one after the other."""
    out: list[Any] = []
    with rb.Session() as session:
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema={"a": sql})
        try:
            with session.sql("SELECT a FROM s").subscribe() as changes:
                for column in columns:
                    rows.push(column if isinstance(column, (pl.DataFrame, pd.DataFrame)) else pa.table({"a": column}))
                rows.end()
                for batch in changes:
                    out += [row["a"] for row in batch]
        finally:
            rows.__init__()  # type: ignore[misc]
    return out


MOMENT, DAY = dt.datetime(2024, 1, 2, 3, 4, 5), dt.date(2024, 1, 2)
FITTING: list[tuple[str, Any, list[Any]]] = [
    ("BIGINT", pa.array([1, None, -(2**31)], pa.int32()), [1, None, -(2**31)]),
    ("INTEGER", pa.array([1, 2**31 - 1]), [1, 2**31 - 1]),
    ("BIGINT", pa.array([1, 2**63 - 1], pa.uint64()), [1, 2**63 - 1]),
    ("BIGINT", pa.array([2.0, None, -0.0]), [2, None, 0]),
    ("BIGINT", pa.array([True, False]), [1, 0]),
    ("BIGINT", pa.array([decimal.Decimal("7.00")]), [7]),
    ("BIGINT", pa.array([5, 6, 5], pa.int32()).dictionary_encode(), [5, 6, 5]),
    ("HUGEINT", pa.array([2**63 - 1, None]), [2**63 - 1, None]),
    ("HUGEINT", pa.array([decimal.Decimal(10**37)], pa.decimal128(38, 0)), [10**37]),
    ("DOUBLE", pa.array([1.5, None, float("inf")], pa.float32()), [1.5, None, float("inf")]),
    ("DOUBLE", pa.array([2**53]), [2.0**53]),
    ("FLOAT", pa.array([0.5, float("-inf")]), [0.5, float("-inf")]),
    ("DECIMAL(9,2)", pa.array([1234567, -1]), [decimal.Decimal("1234567.00"), decimal.Decimal("-1.00")]),
    ("DECIMAL(9,2)", pa.array([decimal.Decimal("1.5000")]), [decimal.Decimal("1.50")]),
    ("TIMESTAMP", pa.array([MOMENT, None], pa.timestamp("s")), [MOMENT, None]),
    ("TIMESTAMP", pa.array([MOMENT], pa.timestamp("ns")), [MOMENT]),
    ("TIMESTAMP", pa.array([MOMENT], pa.timestamp("ns", "Europe/Berlin")), [MOMENT]),
    ("TIMESTAMP", pa.array([DAY]), [dt.datetime(2024, 1, 2)]),
    ("TIMESTAMP_NS", pa.array([MOMENT], pa.timestamp("us")), [MOMENT]),
    ("TIMESTAMP WITH TIME ZONE", pa.array([MOMENT], pa.timestamp("s")), [MOMENT.replace(tzinfo=dt.UTC)]),
    ("DATE", pa.array([dt.datetime(2024, 1, 2), None], pa.timestamp("ns")), [DAY, None]),
    ("VARCHAR", pa.array(["a"], pa.large_string()), ["a"]),
    ("VARCHAR", pa.array(["a"], pa.string_view()), ["a"]),
    ("VARCHAR", pa.array(["a"]).dictionary_encode(), ["a"]),
    ("BIGINT[]", pa.array([[1, None], None], pa.large_list(pa.int32())), [[1, None], None]),
    ("STRUCT(x BIGINT)", pa.array([{"x": 1}], pa.struct([("x", pa.int16())])), [{"x": 1}]),
    ("STRUCT(x INTEGER, y VARCHAR)", pl.DataFrame({"a": [{"x": 1, "y": "s"}]}), [{"x": 1, "y": "s"}]),
    ("BIGINT", pd.DataFrame({"a": [1.0, None]}), [1, None]),
    ("TIMESTAMP", pd.DataFrame({"a": pd.to_datetime([str(MOMENT)])}), [MOMENT]),
    ("VARCHAR", pd.DataFrame({"a": ["x", None]}, dtype="category"), ["x", None]),
    ("INTEGER", pl.DataFrame({"a": [1, 2]}), [1, 2]),
    ("VARCHAR", pl.DataFrame({"a": ["x"]}, schema={"a": pl.Categorical}), ["x"]),
]


@pytest.mark.parametrize(("sql", "column", "want"), FITTING, ids=lambda v: v if isinstance(v, str) else "")
def test_columns_of_other_types_become_those_of_the_stream(sql: str, column: Any, want: list[Any]) -> None:
    assert pushed(sql, column) == want
    if isinstance(column, pa.Array):  # many rows are lent, not copied; and the schema is known at the second push
        many = pa.concat_arrays([column] * ROWS)
        assert pushed(sql, many, column, many) == want * (2 * ROWS + 1)


@pytest.mark.parametrize(
    "sql",
    ["BOOLEAN", "BIGINT", "HUGEINT", "UHUGEINT", "DOUBLE", "DECIMAL(9,2)", "VARCHAR", "BLOB", "UUID", "DATE", "TIME",
     "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "BIGINT[]", "STRUCT(x BIGINT)", "MAP(VARCHAR, BIGINT)"],
)  # fmt: skip
def test_a_column_without_values_is_of_any_type(sql: str) -> None:
    assert pushed(sql, pa.nulls(2)) == [None] * 2
    assert pushed(sql, pl.DataFrame({"a": [None] * ROWS})) == [None] * ROWS
    assert pushed(sql, pd.DataFrame({"a": [None] * 3})) == [None] * 3


@pytest.mark.parametrize(
    ("sql", "column", "shown"),
    [
        ("BIGINT", pa.array([1.0, None, 2.5, 3.5]), r"rows\[2\] has 2.5 \(double\)"),
        ("BIGINT", pa.array([1.0, float("nan")]), r"rows\[1\] has nan \(double\)"),
        ("INTEGER", pa.array([0] * 700 + [2**31]), r"rows\[700\] has 2147483648 \(int64\)"),
        ("BIGINT", pa.array([2**63], pa.uint64()), r"rows\[0\] has 9223372036854775808 \(uint64\)"),
        ("DOUBLE", pa.array([1, 2**53 + 1]), r"rows\[1\] has 9007199254740993 \(int64\)"),
        ("FLOAT", pa.array([1.0, 1e300]), r"rows\[1\] has 1e\+300 \(double\)"),
        ("DECIMAL(5,2)", pa.array([999, 1000]), r"rows\[1\] has 1000 \(int64\)"),
        ("DECIMAL(9,1)", pa.array([decimal.Decimal("1.25")]), r"rows\[0\] has 1.25 \(decimal128\(3, 2\)\)"),
        ("TIMESTAMP", pa.array([1000, 1], pa.timestamp("ns")), r"rows\[1\] has 1970-01-01 00:00:00.000000001"),
        ("DATE", pa.array([0, 1], pa.timestamp("s")), r"rows\[1\] has 1970-01-01 00:00:01 \(timestamp\[s\]\)"),
        ("INTEGER[]", pa.array([[1], [2**31]]), r"rows\[1\] has .*2147483648.* \(list<item: int64>\)"),
    ],
)
def test_a_value_that_does_not_fit_is_named(sql: str, column: Any, shown: str) -> None:
    said = rf"column 'a' takes {re.escape(sql)}, and {shown}.*: it does not fit"
    with pytest.raises(rb.RiverbedSchemaError, match=said) as raised:
        pushed(sql, column)
    assert f"CAST(a AS {sql})" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("BIGINT", pa.array(["1"])),
        ("TIMESTAMP", pa.array(["2024-01-01"])),
        ("VARCHAR", pa.array([1])),
        ("BOOLEAN", pa.array([1])),
        ("DECIMAL(9,2)", pa.array([0.1])),
        ("BIGINT", pa.array([1], pa.timestamp("us"))),
    ],
)
def test_types_that_mean_something_else_are_refused(sql: str, column: Any) -> None:
    with pytest.raises(rb.RiverbedSchemaError, match=r'column "a" is .*, the stream has '):
        pushed(sql, column)


def test_weights_of_any_width_are_weights() -> None:
    with rb.Session() as session:
        rows = rb.MemoryStream(updating=True)
        session.create_stream("s", source=rows, schema={"a": "BIGINT"})
        rows.push(pa.table({"a": pa.array([5], pa.int8()), "__weight": pa.array([2], pa.int32())}))
        rows.end()
        with session.sql("SELECT a FROM s").subscribe() as changes:
            assert [row for batch in changes for row in batch] == [{"a": 5, "__weight": 2}]
        rows.__init__()  # type: ignore[misc]


def test_rows_that_are_sliced_off_are_not_looked_at() -> None:
    assert pushed("INTEGER[]", pa.array([[2**31], [1], [2]]).slice(1)) == [[1], [2]]
    assert pushed("INTEGER", pa.array([2**31, 1, 2]).slice(1)) == [1, 2]


def test_the_cast_of_the_hint_works() -> None:
    with rb.Session() as session:
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema={"a": "INTEGER", "b": "VARCHAR"})
        frame = pa.table({"a": [1.4, 2.6], "b": ["x", "y"]})
        with pytest.raises(rb.RiverbedSchemaError):
            rows.push(frame)
        rows.push(session.sql("SELECT * REPLACE (CAST(a AS INTEGER) AS a) FROM frame"))
        rows.end()
        with session.sql("SELECT * FROM s").subscribe() as changes:
            assert [row["a"] for batch in changes for row in batch] == [1, 3]
        assert frame.num_rows == 2


def test_a_schema_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        _columns, "_same", lambda have, want, same=_columns._same: asked.append(have) or same(have, want)
    )
    for size in (1, ROWS):
        with rb.Session() as session:
            rows = rb.MemoryStream()
            session.create_stream("s", source=rows, schema={"a": "BIGINT", "b": "BIGINT"})
            exact = pa.record_batch({"a": range(size), "b": range(size)})
            for _ in range(3):
                rows.push(exact)
            rows.__init__()  # type: ignore[misc]
        assert len(asked) == 2
        asked.clear()


def test_a_refused_push_is_given_back() -> None:
    with rb.Session() as session:
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema={"a": "BIGINT"})
        rows.push(pa.table({"a": pa.array(range(ROWS), pa.int64())}))
        with pytest.raises(rb.RiverbedSchemaError, match='column "a" is utf8'):
            rows.push(pa.table({"a": pa.array(["x"] * ROWS)}))
        rows.push(pa.table({"a": pa.array(range(ROWS), pa.int64())}))
        rows.end()
        with pytest.raises(rb.RiverbedUsageError, match="the stream is closed"):
            rows.push(pa.table({"a": pa.array(range(ROWS), pa.int64())}))
        counted = session.sql("SELECT count(*) AS n FROM s").subscribe()
        assert [batch.to_pylist() for batch in counted][-1][-1]["n"] == 2 * ROWS
        counted.close()
        rows.__init__()  # type: ignore[misc]


def test_changes_that_were_read_ahead_are_given_back() -> None:
    with rb.Session() as session:
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema={"a": "BIGINT"})
        changes = session.sql("SELECT a FROM s").subscribe()
        for i in range(20):
            rows.push(pa.table({"a": pa.array(range(i, i + 5000), pa.int64())}))
        rows.end()
        steps = [next(changes).step]
        steps += [batch.step for batch in (changes.next(timeout=10) for _ in range(4)) if batch is not None]
        assert steps == sorted(set(steps))
        changes.close()
        with pytest.raises(rb.RiverbedUsageError, match="it is closed"):
            changes.next()
        rows.__init__()  # type: ignore[misc]


def test_a_schema_that_is_known_is_the_same_as_one_handed_over() -> None:
    with rb.Session() as session:
        rows = rb.MemoryStream(watermark="ts")
        session.create_stream("s", source=rows, schema={"ts": "TIMESTAMP", "u": "UUID", "d": "DECIMAL(9,2)"})
        with session.sql("SELECT *, 1.5 AS x FROM s EMIT IMMEDIATE").subscribe() as changes:
            for second in range(3):
                rows.push([(dt.datetime(2024, 1, 1, 0, 0, second), str(uuid.UUID(int=second)), 1)])
                batch = next(changes)
                known, handed_over = batch.to_arrow(), pa.record_batch(batch)
                assert known.equals(handed_over, check_metadata=True)
                assert known.schema.metadata == handed_over.schema.metadata
                assert known.schema.metadata[b"riverbed.watermark"] == str(batch.watermark_us).encode()
        with session.sql("SELECT 1 AS one").subscribe() as changes:  # no watermark but the end
            first = next(changes)
            assert first.to_arrow().schema.metadata == first.to_arrow().schema.metadata
            assert first.to_arrow().equals(pa.record_batch(first), check_metadata=True)
        with session.sql("SELECT u FROM s").subscribe() as changes:  # nor that, before the first row
            rows.push([(None, None, None)])
            unknown = next(changes)
            unknown.to_arrow()
            assert unknown.to_arrow().schema.metadata == pa.record_batch(unknown).schema.metadata
        rows.__init__()  # type: ignore[misc]


def test_a_small_queue_keeps_the_run_close_to_its_reader() -> None:
    with rb.Session() as session:
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema={"a": "BIGINT"})
        with session.sql("SELECT a FROM s").subscribe(queue_size=1) as changes:
            for i in range(30):
                rows.push(pa.table({"a": pa.array(range(i, i + 5000), pa.int64())}))
            first = next(changes)
            # Read, in the queue, in the hands of the run, and the step behind it.
            assert changes.metrics()["steps"] <= (first.step or 0) + 3
            rows.end()
            assert first.num_rows + sum(batch.num_rows for batch in changes) == 30 * 5000
        rows.__init__()  # type: ignore[misc]
