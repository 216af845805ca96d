"""Arrow data that are pushed: they are read where they lie, in whatever layout they come, and given back."""

from __future__ import annotations

import datetime as dt
import decimal
import random
import uuid
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import riverbed as rb

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
    return getattr(column, "storage", column)


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


def test_null_columns_of_polars_are_refused_by_their_type() -> None:
    frame = pl.DataFrame({"a": [None] * ROWS})
    assert frame.schema["a"] == pl.Null
    with rb.Session() as session:
        rows = rb.MemoryStream()
        session.create_stream("s", source=rows, schema={"a": "INTEGER"})
        with pytest.raises(rb.RiverbedSchemaError, match='column "a" is null, the stream has INTEGER'):
            rows.push(frame)
        rows.__init__()  # type: ignore[misc]


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
