"""Delta Lake tables that `deltalake` writes, row for row what it reads itself: all versions and the changes between."""

from __future__ import annotations

import collections
import contextlib
import datetime as dt
import decimal
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time
import uuid
import zlib
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, Schema, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import Field, PrimitiveType

import riverbed as rb

Rows = list[tuple[Any, ...]]
NEW_YEAR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def session() -> Any:
    with rb.Session() as opened:
        yield opened


def plain(value: Any) -> Any:
    """A value in a form that compares and prints alike from either package."""
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value


def rows_of(table: pa.Table) -> Rows:
    return sorted((tuple(plain(v) for v in row.values()) for row in table.to_pylist()), key=repr)


def quoted(path: pathlib.Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def ours(session: rb.Session, path: pathlib.Path, rest: str = "", **options: Any) -> Rows:
    named = "".join(f", {k} = {v!r}" for k, v in options.items())
    return rows_of(session.sql(f"SELECT * FROM delta_scan({quoted(path)}{named}) {rest}").to_arrow())


def theirs(path: pathlib.Path, version: int | None = None) -> Rows:
    return rows_of(DeltaTable(path, version=version).to_pyarrow_table())


def same(session: rb.Session, path: pathlib.Path) -> None:
    """All versions are what deltalake reads, and the stream from each version on adds up to the newest."""
    last = DeltaTable(path).version()
    for version in range(last + 1):
        want = theirs(path, version)
        assert ours(session, path, version=version) == want, f"version {version}"
        count = session.sql(f"SELECT count(*) AS n FROM delta_scan({quoted(path)}, version = {version})").to_pylist()
        assert count == [{"n": len(want)}]
    assert ours(session, path) == theirs(path)
    assert rows_of(session.sql(f"SELECT * FROM {quoted(path)}").to_arrow()) == theirs(path)


def followed(session: rb.Session, path: pathlib.Path, **options: Any) -> Rows:
    """What the changes of a stream add up to. No row goes that is not there."""
    session.create_stream("followed", source=rb.Delta(path, **options))
    standing: collections.Counter[str] = collections.Counter()
    values: dict[str, tuple[Any, ...]] = {}
    for batch in session.sql("SELECT * FROM followed").subscribe(until="latest"):
        for row in batch:
            weight = row.pop("__weight", 1)
            value = tuple(plain(v) for v in row.values())
            values[repr(value)] = value
            standing[repr(value)] += weight
    session.sql("DROP STREAM followed")
    assert all(n >= 0 for n in standing.values())
    return [values[text] for text in sorted(standing) for _ in range(standing[text])]


def sample(first: int, n: int) -> pa.Table:
    """Rows of every type that a Delta table has, with NULLs."""
    some = range(first, first + n)

    def column(kind: pa.DataType, value: Any) -> pa.Array:
        return pa.array([None if i % 5 == 4 else value(i) for i in some], kind)

    inner = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    return pa.table(
        {
            "id": pa.array(some, pa.int64()),
            "part": column(pa.string(), lambda i: ["x", "y z", "ü=/%20'", "1"][i % 4]),
            "flag": column(pa.bool_(), lambda i: i % 2 == 0),
            "i8": column(pa.int8(), lambda i: i % 100 - 50),
            "i16": column(pa.int16(), lambda i: -i),
            "i32": column(pa.int32(), lambda i: i * 1000),
            "f32": column(pa.float32(), lambda i: i / 8),
            "f64": column(pa.float64(), lambda i: float("inf") if i % 7 == 0 else i / 3),
            "dec": column(pa.decimal128(10, 2), lambda i: decimal.Decimal(i) / 4),
            "wide": column(pa.decimal128(38, 10), lambda i: decimal.Decimal(10) ** 25 + i),
            "text": column(pa.string(), lambda i: "text " * (i % 3) + str(i)),
            "blob": column(pa.binary(), lambda i: bytes([i % 256, 0, 255])),
            "day": column(pa.date32(), lambda i: dt.date(1969, 12, 1) + dt.timedelta(i)),
            "at": column(pa.timestamp("us", "UTC"), lambda i: NEW_YEAR + dt.timedelta(0, i, i)),
            "local": column(pa.timestamp("us"), lambda i: dt.datetime(2026, 1, 1) + dt.timedelta(0, -i, i)),
            "list": column(pa.list_(pa.int64()), lambda i: [None if k == 1 else k for k in range(i % 4)]),
            "dict": column(
                pa.map_(pa.string(), inner), lambda i: [(str(k), {"a": k, "b": ["q", None]}) for k in range(i % 3)]
            ),
            "struct": column(inner, lambda i: {"a": i, "b": None if i % 2 else [str(i)]}),
        }
    )


@pytest.mark.parametrize("part", [[], ["part"], ["day", "flag"]])
def test_versions_of_every_type(session: rb.Session, tmp_path: pathlib.Path, part: list[str]) -> None:
    path = tmp_path / "lake of 'all' types"
    write_deltalake(path, sample(0, 40), partition_by=part)
    write_deltalake(path, sample(40, 5), mode="append")
    DeltaTable(path).delete("id % 3 = 0")
    DeltaTable(path).update(updates={"text": "'changed'", "i32": "i32 + 1"}, predicate="id < 10")
    DeltaTable(path).create_checkpoint()
    DeltaTable(path).optimize.compact()
    write_deltalake(path, sample(100, 7), mode="append")
    write_deltalake(path, sample(200, 3), mode="overwrite")
    same(session, path)
    for version in (0, 3):
        assert followed(session, path, version=version) == theirs(path)


def test_scans_read_what_they_need(session: rb.Session, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lake"
    for k in range(5):
        write_deltalake(path, sample(100 * k, 50), mode="append", partition_by=["part"])
    want = theirs(path)
    names = DeltaTable(path).to_pyarrow_table().column_names

    def kept(column: str, keep: Any) -> Rows:
        return [row for row in want if row[names.index(column)] is not None and keep(row[names.index(column)])]

    assert ours(session, path, "WHERE id BETWEEN 120 AND 130") == kept("id", lambda v: 120 <= v <= 130)
    assert ours(session, path, "WHERE part = 'y z'") == kept("part", lambda v: v == "y z")
    assert ours(session, path, "WHERE text > 'text 3'") == kept("text", lambda v: v > "text 3")
    assert ours(session, path, "WHERE dec >= 100.25") == kept("dec", lambda v: v >= decimal.Decimal("100.25"))
    edge = NEW_YEAR + dt.timedelta(0, 123, 123)
    at_edge = """WHERE "at" = TIMESTAMPTZ '2026-01-01 00:02:03.000123+00'"""
    assert ours(session, path, at_edge) == kept("at", lambda v: v == edge) != []
    part = names.index("part")
    assert ours(session, path, "WHERE part IS NULL AND f64 > 50") == [
        row for row in kept("f64", lambda v: v > 50) if row[part] is None
    ]
    bounds = "count(*) AS n, min(id) AS lo, max(id) AS hi, max(day) AS day"
    found = session.sql(f"SELECT {bounds} FROM delta_scan({quoted(path)})").to_pylist()
    last = max(row[names.index("day")] for row in kept("day", lambda _: True))
    assert found == [{"n": 250, "lo": 0, "hi": 449, "day": last}]
    # The files of other partitions and ranges are not even opened.
    for file in path.glob("part=*/*.parquet"):
        if "part=x" not in str(file):
            file.write_bytes(b"")
    assert ours(session, path, "WHERE part = 'x'") == kept("part", lambda v: v == "x")
    with pytest.raises(rb.RiverbedSourceError, match="has 0 bytes, and the log says"):
        ours(session, path)


def test_a_random_life(session: rb.Session, tmp_path: pathlib.Path) -> None:
    """What a table goes through, in any order, with and without a change feed."""
    for seed in range(4):
        chance = random.Random(seed)
        path = tmp_path / str(seed)
        feed = {"delta.enableChangeDataFeed": "true"} if seed % 2 else None
        write_deltalake(path, sample(0, 30), partition_by=["part"] if seed < 2 else None, configuration=feed)
        for step in range(14):
            table = DeltaTable(path)
            lo = chance.randrange(200)
            what = chance.randrange(8)
            if what < 2:
                write_deltalake(path, sample(lo, chance.randrange(1, 30)), mode="append")
            elif what == 2:
                table.delete(f"id BETWEEN {lo} AND {lo + 40}")
            elif what == 3:
                table.update(updates={"text": f"'step {step}'"}, predicate=f"id % 4 = {chance.randrange(4)}")
            elif what == 4:
                merge = table.merge(sample(lo, 12), predicate="t.id = s.id", source_alias="s", target_alias="t")
                with contextlib.suppress(DeltaError):  # two rows of one id: nothing is written
                    merge.when_matched_update(updates={"i32": "s.i32 + 7"}).when_not_matched_insert_all().execute()
            elif what == 5:
                write_deltalake(path, sample(lo, 20), mode="overwrite")
            elif what == 6:
                table.optimize.compact()
            else:
                table.create_checkpoint()
        same(session, path)
        for version in (0, chance.randrange(DeltaTable(path).version() + 1)):
            assert followed(session, path, version=version) == theirs(path)


def test_schemas_that_grow(session: rb.Session, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lake"
    one = pa.struct([("a", pa.int64())])
    write_deltalake(path, pa.table({"id": pa.array([1, 2], pa.int64()), "s": pa.array([{"a": 1}, None], one)}))
    more = pa.struct([("a", pa.int64()), ("b", pa.string())])
    late = pa.table({"id": pa.array([3], pa.int64()), "s": pa.array([{"a": 3, "b": "x"}], more), "new": ["y"]})
    write_deltalake(path, late, mode="append", schema_mode="merge")
    DeltaTable(path).alter.add_columns([Field("later", PrimitiveType("double"))])
    same(session, path)
    # A stream has the columns of its version; what comes is left out, also within structs.
    assert followed(session, path, version=0) == [(1, (("a", 1),)), (2, None), (3, (("a", 3),))]
    write_deltalake(path, pa.table({"other": [1.5]}), mode="overwrite", schema_mode="overwrite")
    same(session, path)
    with pytest.raises(rb.RiverbedSourceError, match='no column "id"'):
        followed(session, path, version=0)


def queried(path: pathlib.Path) -> Rows:
    """What the query engine of deltalake reads, which knows column mapping and deletion vectors."""
    table = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t").read_all()
    return rows_of(pa.table(table))


@pytest.mark.parametrize(("mode", "part", "local"), [("name", False, False), ("id", True, False), ("name", True, True)])
def test_mapped_columns(session: rb.Session, tmp_path: pathlib.Path, mode: str, part: bool, local: bool) -> None:
    path = tmp_path / "lake"
    data = sample(0, 40)
    if not local:  # with such a column the package chooses a protocol under which nothing is mapped
        data = data.drop_columns("local")
    data = data.rename_columns([f"a {name}, {{or}} so" for name in data.column_names])
    mapped = {"delta.columnMapping.mode": mode}
    by = ["a part, {or} so"] if part else None
    write_deltalake(path, data, partition_by=by, configuration=mapped)
    write_deltalake(path, data.slice(3, 9), mode="append")
    DeltaTable(path).delete('"a id, {or} so" % 3 = 1')
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, data.slice(20, 5), mode="append")
    want = queried(path)
    assert len(want) > 30
    assert ours(session, path) == want
    assert followed(session, path, version=0) == want
    assert ours(session, path, 'WHERE "a id, {or} so" < 5') == [row for row in want if row[0] < 5]


def z85(data: bytes) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(digits[word // 85**k % 85] for word in words for k in (4, 3, 2, 1, 0))


def vector(rows: list[int], path: pathlib.Path | None) -> dict[str, Any]:
    """A deletion vector: inline, or in a file of the table."""
    parts = collections.defaultdict(list)
    for row in rows:
        parts[row >> 16].append(row & 0xFFFF)
    data = struct.pack("<IQIII", 1681511377, 1, 0, 12346, len(parts))
    data += b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in parts.items())
    at = len(data) - 16 + 4 * len(parts)
    for low in parts.values():
        data += struct.pack("<I", at)
        at += 2 * len(low) if len(low) <= 4096 else 8192
    for low in parts.values():
        if len(low) <= 4096:
            data += struct.pack(f"<{len(low)}H", *low)
        else:
            data += sum(1 << bit for bit in low).to_bytes(8192, "little")
    about = {"sizeInBytes": len(data), "cardinality": len(rows)}
    if path is None:
        return about | {"storageType": "i", "pathOrInlineDv": z85(data + bytes(-len(data) % 4))}
    name = uuid.uuid4()
    block = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (path / f"deletion_vector_{name}.bin").write_bytes(b"\x01" + block)
    return about | {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": 1}


def test_deletion_vectors(session: rb.Session, tmp_path: pathlib.Path) -> None:
    """The package reads vectors and writes none, so they are put into its tables by hand."""
    path = tmp_path / "lake"
    n = 150_000
    write_deltalake(
        path,
        pa.table({"id": range(n), "text": [f"text {i % 100}" for i in range(n)]}),
        configuration={"delta.enableDeletionVectors": "true"},
    )
    log = path / "_delta_log" / f"{0:020}.json"
    [add] = [line["add"] for line in map(json.loads, log.read_text().splitlines()) if "add" in line]
    inline = vector([0, 7, 65_535, 65_536, n - 1], None)
    most = vector([i for i in range(n) if i % 3 or i > 140_000], path)
    for version, (old, new) in enumerate([(None, inline), (inline, most)], 1):
        remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1, "deletionVector": old}
        lines = [{"remove": remove}, {"add": add | {"deletionVector": new}}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (path / "_delta_log" / f"{version:020}.json").write_text(text)
        want = queried(path)
        assert len(want) == n - new["cardinality"]
        assert ours(session, path) == want
        count = session.sql(f"SELECT count(*) AS n, count(text) AS m FROM {quoted(path)} WHERE id > 5").to_pylist()
        kept = sum(row[0] > 5 for row in want)
        assert count == [{"n": kept, "m": kept}]
        assert followed(session, path, version=0) == want


def test_time_travel(session: rb.Session, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lake"
    for k in range(3):
        write_deltalake(path, pa.table({"k": [k]}), mode="append")
        at = dt.datetime(2026, 1, 1 + k, tzinfo=dt.UTC).timestamp()
        os.utime(path / "_delta_log" / f"{k:020}.json", (at, at))
    assert ours(session, path, timestamp="2026-01-02 10:00:00") == [(0,), (1,)]
    session.create_table("past", source=rb.Delta(path, timestamp=dt.datetime(2026, 1, 1, 12)))
    assert session.sql("SELECT k FROM past").to_pylist() == [{"k": 0}]
    with pytest.raises(rb.RiverbedSourceError, match="no version 7"):
        ours(session, path, version=7)


def test_a_vacuumed_table(session: rb.Session, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lake"
    write_deltalake(path, pa.table({"k": [1, 2, 3]}))
    write_deltalake(path, pa.table({"k": [4]}), mode="overwrite")
    DeltaTable(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert ours(session, path) == [(4,)]
    assert followed(session, path) == [(4,)]
    with pytest.raises(rb.RiverbedSourceError, match="vacuumed"):
        ours(session, path, version=0)
    with pytest.raises(rb.RiverbedSourceError, match="vacuumed"):
        followed(session, path, version=0)


def test_a_cleaned_log(session: rb.Session, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lake"
    for k in range(6):
        write_deltalake(path, pa.table({"k": [k]}), mode="append")
    DeltaTable(path, version=3).create_checkpoint()
    for k in range(3):
        (path / "_delta_log" / f"{k:020}.json").unlink()
    assert ours(session, path) == [(k,) for k in range(6)]
    assert ours(session, path, version=3) == [(k,) for k in range(4)]
    with pytest.raises(rb.RiverbedSourceError, match="oldest version that can still be read is 3"):
        ours(session, path, version=2)


def test_a_live_stream(session: rb.Session, tmp_path: pathlib.Path) -> None:
    """New versions are found while the query runs; a version is shown at once."""
    path = tmp_path / "lake"
    schema = Schema([Field("k", PrimitiveType("string")), Field("v", PrimitiveType("long"))])
    DeltaTable.create(path, schema, configuration={"delta.appendOnly": "true"})
    session.create_stream("live", source=rb.Delta(path, poll_interval="20ms"))
    seen: list[dict[str, Any]] = []
    with session.sql("SELECT k, v FROM live").subscribe() as rows:
        for n in range(3):
            write_deltalake(path, pa.table({"k": ["a", "b"], "v": [n, n]}), mode="append")
            while len(seen) < 2 * (n + 1):
                seen += [row for batch in [next(rows)] for row in batch]
    assert [(r["k"], r["v"]) for r in seen] == [(k, n) for n in range(3) for k in "ab"]


PIPELINE = """
import sys
import riverbed as rb

lake, out, checkpoints, until = sys.argv[1:]
session = rb.Session({"checkpoint_url": checkpoints, "checkpoint_interval_ms": 1, "step_rows": 7})
session.create_stream("lake", source=rb.Delta(lake, version=0, poll_interval="5ms"))
pipeline = session.sql("SELECT id, text FROM lake EMIT IMMEDIATE").sink(
    rb.Json(out, changelog=True), exactly_once=True, pipeline_id="copy"
)
pipeline.run(until=until or None)
"""


def test_a_pipeline_that_is_killed(tmp_path: pathlib.Path) -> None:
    """What it wrote before and after adds up to the table, which went on meanwhile: no change is lost or doubled."""
    chance = random.Random(7)
    path, out = tmp_path / "lake", tmp_path / "out"
    write_deltalake(path, sample(0, 60))
    command = [sys.executable, "-c", PIPELINE, str(path), str(out), str(tmp_path / "checkpoints")]
    for kill in range(6):
        with subprocess.Popen([*command, ""]) as child:
            files = len(list(out.glob("*")))
            for step in range(4):
                write_deltalake(path, sample(100 * kill + 10 * step, 10), mode="append")
                DeltaTable(path).delete(f"id % 10 = {chance.randrange(10)}")
            while len(list(out.glob("*"))) <= files and child.poll() is None:
                time.sleep(0.01)  # until it has written something
            time.sleep(chance.random() / 5)
            assert child.poll() is None, "it ended by itself"
            child.kill()
    subprocess.run([*command, "latest"], check=True)
    standing: collections.Counter[tuple[Any, ...]] = collections.Counter()
    for file in out.glob("*.json*"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            standing[row["id"], row["text"]] += row["__weight"]
    names = DeltaTable(path).to_pyarrow_table().column_names
    want = collections.Counter((row[names.index("id")], row[names.index("text")]) for row in theirs(path))
    assert {row: n for row, n in standing.items() if n} == dict(want)


def test_event_time_of_the_first_version(session: rb.Session, tmp_path: pathlib.Path) -> None:
    """Files are read in the order in which they were written, so that none of their rows is late."""
    path = tmp_path / "lake"
    for minute in range(12):
        ts = [NEW_YEAR + dt.timedelta(0, 60 * minute + second) for second in range(0, 60, 20)]
        write_deltalake(
            path, pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")), "v": [minute] * 3}), mode="append"
        )
    session.sql(
        f"""CREATE STREAM live (v BIGINT, ts TIMESTAMPTZ, WATERMARK FOR ts AS ts)
            WITH (connector = 'delta', path = {quoted(path)}, append_only = true)"""
    )
    query = "SELECT count(*) AS n, sum(v) AS v FROM live GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK"
    rows = [row for batch in session.sql(query).subscribe(until="latest") for row in batch]
    assert sorted((row["n"], row["v"]) for row in rows) == [(3, 3 * minute) for minute in range(12)]


def test_tables_that_ask_for_more(session: rb.Session, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lake"
    write_deltalake(path, pa.table({"k": [1]}))
    log = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] |= {"minReaderVersion": 3, "readerFeatures": ["catalogManaged"]}
    log.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(rb.RiverbedUnsupportedError, match="catalogManaged"):
        ours(session, path)
    shutil.rmtree(path / "_delta_log")
    with pytest.raises(rb.RiverbedSourceError, match="no Delta table"):
        ours(session, path)
