"""Memory and types across the C boundary, without the engine: what goes in comes out, in the same place."""

from __future__ import annotations

import ctypes
import datetime as dt
import decimal
import threading
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import riverbed as rb
from riverbed import _arrow, _native
from riverbed.batch import Batch

from .conftest import alive

pytestmark = pytest.mark.usefixtures("leaks_nothing")


def echo(source: Any) -> _native.Handle:
    relation = _arrow.import_stream(source)
    result = _native.call_handle("rb_test_echo", relation.value)
    relation.close()
    assert result is not None
    return result


def batches(source: Any) -> list[Batch]:
    result = echo(source)
    out = []
    while (handle := _native.next_batch(result)) is not None:
        out.append(Batch(handle))
    result.close()
    return out


def through(source: Any) -> pa.Table:
    return pa.Table.from_batches([b.to_arrow() for b in batches(source)])


PLAIN = pa.table(
    {
        "i8": pa.array([1, None, -3], pa.int8()),
        "u64": pa.array([1, None, 2**64 - 1], pa.uint64()),
        "f": pa.array([1.5, None, float("inf")]),
        "b": pa.array([True, None, False]),
        "s": pa.array(["a", None, "ünï"]),
        "z": pa.array([b"a", None, b"\x00"]),
        "d": pa.array([dt.date(2024, 2, 29), None, dt.date(1900, 1, 1)]),
        "t": pa.array([dt.time(1, 2, 3, 4), None, dt.time(0)]),
        "ts": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1969, 12, 31, 23)], pa.timestamp("us")),
        "tz": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1970, 1, 1)], pa.timestamp("us", "UTC")),
        "dec": pa.array([decimal.Decimal("1.23"), None, decimal.Decimal("-99.99")], pa.decimal128(9, 2)),
        "l": pa.array([[1, 2], None, []], pa.list_(pa.field("item", pa.int64()))),
        "st": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]),
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    }
)


def test_plain_types_come_back_equal_and_are_not_copied() -> None:
    back = through(PLAIN)
    assert back.to_pylist() == PLAIN.to_pylist()
    for name in PLAIN.column_names:
        if pa.types.is_nested(PLAIN.schema.field(name).type):
            continue
        sent = [b.address for b in PLAIN[name].chunk(0).buffers() if b is not None]
        got = [b.address for b in back[name].chunk(0).buffers() if b is not None]
        assert sent == got, name


def test_a_slice_keeps_its_rows() -> None:
    table = pa.concat_tables([PLAIN, PLAIN]).combine_chunks().slice(2, 3)
    assert through(table).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (pa.array(["a", None, "longer than twelve bytes"], pa.large_string()), pa.string()),
        (pa.array(["a", None, "longer than twelve bytes"], pa.string_view()), pa.string()),
        (pa.array([b"a", None, b"longer than twelve bytes"], pa.large_binary()), pa.binary()),
        (pa.array([b"abc", None, b"def"], pa.binary(3)), pa.binary()),
        (pa.array(["x", None, "x", "y"]).dictionary_encode(), pa.string()),
        (pa.array([[1], None, [2, 3]], pa.large_list(pa.int64())), pa.list_(pa.int64())),
        (pa.array([[1, 2], None, [2, 3]], pa.list_(pa.int64(), 2)), pa.list_(pa.int64())),
        (pa.array([["a"], None, ["b", "c"]], pa.list_(pa.large_string())), pa.list_(pa.string())),
        (
            pa.array([{"s": "a"}, None, {"s": "b"}], pa.struct([("s", pa.string_view())])),
            pa.struct([("s", pa.string())]),
        ),
        (pa.array([1, None, 2], pa.float16()), pa.float32()),
        (pa.array([dt.date(1969, 12, 31), None, dt.date(2024, 1, 1)], pa.date64()), pa.date32()),
        (pa.array([dt.time(1), None, dt.time(2)], pa.time32("s")), pa.time64("us")),
        (pa.array([1, None, -1], pa.timestamp("ms", "Europe/London")), pa.timestamp("us", "UTC")),
        (pa.array([1, None, -1], pa.timestamp("us", "Europe/London")), pa.timestamp("us", "UTC")),
        (pa.array([decimal.Decimal("-1.5"), None, decimal.Decimal("2.5")], pa.decimal256(20, 1)), pa.decimal128(20, 1)),
        (pa.array([decimal.Decimal("-1.5"), None, decimal.Decimal("2.5")], pa.decimal64(10, 1)), pa.decimal128(10, 1)),
    ],
    ids=lambda v: str(v.type) if isinstance(v, pa.Array) else "",
)
@pytest.mark.parametrize("offset", [0, 1])
def test_other_layouts_become_the_engines(given: pa.Array, want: pa.DataType, offset: int) -> None:
    given = given.slice(offset)
    back = through(pa.table({"c": given}))
    assert back.schema.field("c").type.equals(want)
    if given.type != pa.timestamp("ms", "Europe/London"):
        assert (
            back["c"].to_pylist() == given.cast(want).to_pylist() if pa.types.is_timestamp(want) else given.to_pylist()
        )
    else:
        assert back["c"].cast(pa.int64()).to_pylist() == [1000, None, -1000][offset:]


def test_an_unknown_layout_is_an_error_that_names_the_column() -> None:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    with pytest.raises(rb.RiverbedSchemaError, match='"c"'):
        through(pa.table({"c": union}))


def test_what_pandas_and_polars_export() -> None:
    rows = {"a": [1, 2], "s": ["x", "y"]}
    assert through(pd.DataFrame(rows)).to_pydict() == rows
    assert through(pl.DataFrame(rows)).to_pydict() == rows
    assert through(pl.DataFrame(rows).with_columns(pl.col("s").cast(pl.Categorical))).to_pydict() == rows
    assert through(pl.DataFrame({"l": [["a"], None]})).to_pydict() == {"l": [["a"], None]}


def test_null_columns_that_come_with_a_buffer() -> None:
    before = alive()
    frame = pl.DataFrame({"a": [None, None], "b": [1, 2], "l": [[None], []], "s": [{"x": None}, None]})
    assert frame.schema["a"] == pl.Null
    session = rb.Session()
    assert session.sql("SELECT * FROM frame").to_pylist() == frame.to_dicts()
    assert session.sql("SELECT * FROM frame").schema[:2] == [("a", "INTEGER"), ("b", "BIGINT")]
    session.create_table("kept", source=frame)
    assert session.sql("SELECT * FROM kept").to_pylist() == frame.to_dicts()
    assert through(frame.select("a", "b")).to_pydict() == {"a": [None, None], "b": [1, 2]}
    session.close()
    del session
    assert alive() == before


def test_every_consumer_takes_a_batch() -> None:
    (batch,) = batches(pa.table({"a": [1, 2], "s": ["x", None]}))
    want = [{"a": 1, "s": "x"}, {"a": 2, "s": None}]
    assert batch.to_pylist() == want
    assert batch.to_arrow().to_pylist() == want
    assert batch.to_polars().to_dicts() == want
    assert pl.DataFrame(batch.to_arrow()).to_dicts() == want
    assert (len(batch), batch.num_columns, batch.step, batch.watermark, batch.barrier) == (2, 2, None, None, None)


def test_values_read_without_pyarrow_are_those_read_with_it() -> None:
    (batch,) = batches(PLAIN)
    mine, theirs = batch.to_pylist(), PLAIN.to_pylist()
    for row in theirs:
        row["m"] = None if row["m"] is None else dict(row["m"])
    assert mine == theirs


def test_rows_written_without_pyarrow_are_those_that_were_given() -> None:
    columns = [
        ("i", "INTEGER"), ("d", "DOUBLE"), ("s", "VARCHAR"), ("b", "BOOLEAN"), ("z", "BLOB"), ("day", "DATE"),
        ("ts", "TIMESTAMP"), ("tz", "TIMESTAMP WITH TIME ZONE"), ("dec", "DECIMAL(9,2)"),
    ]  # fmt: skip
    rows = [
        {"i": 1, "d": 0.5, "s": "ü", "b": True, "z": b"\x00", "day": dt.date(2024, 2, 29),
         "dec": decimal.Decimal("1.23"), "ts": dt.datetime(1969, 12, 31, 23, 59),
         "tz": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)},
        dict.fromkeys((name for name, _ in columns), None),
    ]  # fmt: skip
    made = _arrow.Rows(columns, rows)
    back = pa.RecordBatch._import_from_c(*made.addresses)
    assert back.to_pylist() == rows
    del back


@pytest.mark.parametrize(
    ("kind", "value"), [("INTEGER", "x"), ("INTEGER", 2**40), ("VARCHAR", 1), ("TIMESTAMP", 1.5), ("DECIMAL(3,1)", "x")]
)
def test_a_value_of_another_type_is_an_error_that_names_the_column(kind: str, value: object) -> None:
    with pytest.raises(rb.RiverbedSchemaError, match="'c'"):
        _arrow.Rows([("c", kind)], [{"c": value}])


def test_buffers_outlive_the_batch_and_its_source() -> None:
    table = pa.table({"a": pa.array(range(1000)), "s": pa.array([str(i) for i in range(1000)])})
    expected = table.to_pydict()
    (batch,) = batches(table)
    arrow = batch.to_arrow()
    del table, batch
    alive()
    assert arrow.to_pydict() == expected


def test_an_import_lives_as_long_as_one_exported_column_of_it() -> None:
    before = alive()
    (batch,) = batches(pa.table({"a": pa.array(range(1000)), "b": pa.array(range(1000))}))
    column = batch.to_arrow().column(0)
    del batch
    assert alive()["imports"] == before["imports"] + 1
    assert column.to_pylist() == list(range(1000))
    del column
    assert alive()["imports"] == before["imports"]


def test_engine_memory_is_pinned_while_it_is_held() -> None:
    before = alive()["pinned_bytes"]
    (batch,) = batches(pa.table({"s": pa.array(["some text", "more"], pa.large_string())}))
    arrow = batch.to_arrow()
    assert alive()["pinned_bytes"] > before
    del arrow
    assert alive()["pinned_bytes"] == before
    assert batch.to_pylist() == [{"s": "some text"}, {"s": "more"}]


def test_a_stream_moves_lazily_through_a_capsule() -> None:
    table = pa.table({"a": pa.array(range(10_000))})
    result = echo(pa.Table.from_batches(table.to_batches(max_chunksize=100)))
    stream = _arrow.alloc(_arrow.CStream)
    capsule = _arrow.stream_capsule(stream)
    _native.call("rb_result_stream", result.value, stream)

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return capsule

    reader = pa.RecordBatchReader.from_stream(Stream())
    assert reader.read_next_batch().num_rows == 100
    assert sum(b.num_rows for b in reader) == 9_900
    with pytest.raises(rb.RiverbedUsageError, match="result is closed"):
        _native.next_batch(result)


def test_an_unread_stream_is_given_back() -> None:
    result = echo(pa.table({"a": [1]}))
    stream = _arrow.alloc(_arrow.CStream)
    capsule = _arrow.stream_capsule(stream)
    _native.call("rb_result_stream", result.value, stream)
    del capsule


def test_a_producer_that_fails_is_a_source_error() -> None:
    def fail() -> Any:
        yield pa.record_batch({"a": [1]})
        raise ValueError("no more")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), fail())
    with pytest.raises(rb.RiverbedSourceError, match="no more"):
        echo(reader)


def test_closed_and_foreign_handles_are_errors() -> None:
    relation = _arrow.import_stream(pa.table({"a": [1]}))
    with pytest.raises(rb.RiverbedUsageError, match="this is a relation, a result is needed"):
        _native.next_batch(relation)
    number = relation.value
    relation.close()
    relation.close()
    with pytest.raises(rb.RiverbedUsageError, match="closed"):
        _native.next_batch(relation)
    for stale in (number, 0, 2**63):
        with pytest.raises(rb.RiverbedUsageError, match="closed"):
            _native.call_handle("rb_test_echo", stale)


def test_many_threads_share_the_library() -> None:
    table = pa.table({"a": pa.array(range(1000))})
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                assert through(table).num_rows == 1000
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


def test_other_threads_run_while_a_call_waits() -> None:
    result = echo(pa.table({"a": [1]}))
    turns = 0
    done = threading.Event()

    def work() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1

    thread = threading.Thread(target=work)
    thread.start()
    _native.call("rb_test_wait", result.value, 200)
    seen = turns
    done.set()
    thread.join()
    result.close()
    assert seen > 1000


def test_the_error_table_is_the_librarys() -> None:
    from riverbed import errors

    assert {e["class"] for e in _native.version()["errors"]} == set(errors.CLASSES)
    for name in errors.CLASSES:
        assert getattr(rb, name) is errors.CLASSES[name]
        assert issubclass(getattr(rb, name), rb.RiverbedError)


def test_every_signature_has_as_many_arguments_as_the_header() -> None:
    dll = _native.library()
    for name, arguments in _native._SIGNATURES.items():  # type: ignore[attr-defined]
        assert getattr(dll, name).restype is ctypes.c_int32
        assert len(getattr(dll, name).argtypes) in (len(arguments), len(arguments) + 1)
