"""Iceberg tables: what `pyiceberg` writes, row for row as it reads it, and what we write, as it reads it and DuckDB."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType, TimestamptzType

import riverbed as rb

Rows = list[tuple[Any, ...]]
NEW_YEAR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def session() -> Any:
    with rb.Session() as opened:
        yield opened


class Lake:
    """A catalog in SQLite that both sides use."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.uri = f"sqlite:///{folder}/catalog.db"
        self.theirs = SqlCatalog("default", uri=self.uri, warehouse=f"file://{folder}")
        self.theirs.create_namespace_if_not_exists("n")

    def table(self, name: str = "n.t") -> Table:
        return self.theirs.load_table(name)


@pytest.fixture
def lake(tmp_path: pathlib.Path) -> Lake:
    return Lake(tmp_path)


def plain(value: Any) -> Any:
    """A value in a form that compares and prints alike from either package."""
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    if isinstance(value, uuid.UUID):
        return str(value)
    return value


def rows_of(table: pa.Table) -> Rows:
    return sorted((tuple(plain(v) for v in row.values()) for row in table.to_pylist()), key=repr)


def ours(session: rb.Session, lake: Lake, rest: str = "", **options: Any) -> Rows:
    named = "".join(f", {k} = {v!r}" for k, v in options.items())
    return rows_of(session.sql(f"SELECT * FROM iceberg_scan('n.t', catalog = '{lake.uri}'{named}) {rest}").to_arrow())


def theirs(lake: Lake, snapshot: int | None = None) -> Rows:
    return rows_of(lake.table().scan(snapshot_id=snapshot).to_arrow())


# The DuckDB whose extension for Iceberg is on PyPI is an older one than that of the tests: it runs in a process of its
# own.
DUCKDB = pathlib.Path(__file__).parents[2] / ".venv" / "duckdb-iceberg"
READ = """
import duckdb, glob, json, pickle, sys
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
for name in ("avro", "iceberg"):
    found = glob.glob(f"{sys.argv[1]}/duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension")
    connection.execute(f"LOAD '{found[0]}'")
queries = json.load(sys.stdin)
pickle.dump([connection.execute(query).to_arrow_table() for query in queries], sys.stdout.buffer)
"""


def by_duckdb(tables: list[Table], where: str = "true") -> list[Rows]:
    """The rows of tables as DuckDB reads them."""
    queries = [f"SELECT * FROM iceberg_scan('{table.metadata_location}') AS rows WHERE {where}" for table in tables]
    done = subprocess.run(
        [sys.executable, "-c", READ, str(DUCKDB)],
        input=json.dumps(queries).encode(),
        env=os.environ | {"PYTHONPATH": str(DUCKDB)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [rows_of(table) for table in pickle.loads(done.stdout)]


def followed(session: rb.Session, lake: Lake, **options: Any) -> Rows:
    """What the changes of a stream add up to. No row goes that is not there."""
    session.create_stream("followed", source=rb.Iceberg(lake.uri, "n.t", **options))
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


def same(session: rb.Session, lake: Lake) -> None:
    """All snapshots are what pyiceberg reads, and the stream from the first on adds up to the newest."""
    for s in lake.table().snapshots():
        assert ours(session, lake, snapshot=s.snapshot_id) == theirs(lake, s.snapshot_id)
    assert ours(session, lake) == theirs(lake)
    assert followed(session, lake) == theirs(lake)
    assert followed(session, lake, start="earliest") == theirs(lake)


def sample(first: int, n: int) -> pa.Table:
    """Rows of the table that tests change, with NULLs."""
    some = range(first, first + n)
    return pa.table(
        {
            "id": pa.array(some, pa.int32()),
            "part": pa.array([None if i % 5 == 0 else "xyz"[i % 3] for i in some], pa.string()),
            "at": pa.array([NEW_YEAR + dt.timedelta(hours=i) for i in some], pa.timestamp("us", "UTC")),
            "day": pa.array([(NEW_YEAR + dt.timedelta(days=i % 4)).date() for i in some], pa.date32()),
        }
    )


SCHEMA = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "part", StringType()),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "day", DateType()),
)
SPECS = {
    "none": PartitionSpec(),
    "identity": PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "part"), PartitionField(4, 1001, IdentityTransform(), "by_day")
    ),
    "hidden": PartitionSpec(
        PartitionField(3, 1000, DayTransform(), "at_day"), PartitionField(1, 1001, BucketTransform(3), "id_bucket")
    ),
}


@pytest.mark.parametrize("spec", SPECS)
def test_a_life_of_their_table(session: rb.Session, lake: Lake, spec: str) -> None:
    """Appends, deletes, overwrites, upserts and other schemas, in an order that the seed gives."""
    chance = random.Random(spec)
    table = lake.theirs.create_table("n.t", SCHEMA, partition_spec=SPECS[spec])
    table.append(sample(0, 30))
    for _ in range(6):
        lo = chance.randrange(40)
        what = chance.randrange(4)
        if what == 0:
            table.append(sample(lo, 10))
        elif what == 1:
            table.delete(And(GreaterThanOrEqual("id", lo), LessThan("id", lo + 7)))
        elif what == 2:
            table.overwrite(sample(lo, 5), EqualTo("part", "xyz"[lo % 3]))
        else:
            table.delete(EqualTo("part", "y"))
    same(session, lake)


def test_schemas_that_change(session: rb.Session, lake: Lake) -> None:
    table = lake.theirs.create_table("n.t", SCHEMA, partition_spec=SPECS["identity"])
    table.append(sample(0, 10))
    with table.update_schema() as update:
        update.rename_column("at", "moment").update_column("id", LongType()).add_column("more", StringType())
    with table.update_spec() as spec:
        spec.remove_field("by_day")
    with table.update_schema() as update:
        update.delete_column("day")
    with table.update_schema() as update:
        update.add_column("day", StringType())
    late = pa.table(
        {
            "id": pa.array([1 << 40], pa.int64()),
            "part": ["x"],
            "moment": pa.array([NEW_YEAR], pa.timestamp("us", "UTC")),
            "more": ["m"],
            "day": ["not a date"],
        }
    )
    table.append(late)
    assert ours(session, lake) == theirs(lake)
    assert followed(session, lake, start="earliest") == theirs(lake)
    first = table.snapshots()[0].snapshot_id
    assert ours(session, lake, snapshot=first) == theirs(lake, first)


def test_expired_snapshots(session: rb.Session, lake: Lake, tmp_path: pathlib.Path) -> None:
    """A pipeline that stood still for too long is told so."""
    table = lake.theirs.create_table("n.t", SCHEMA)
    table.append(sample(0, 3))
    settings = {"checkpoint_url": str(tmp_path / "checkpoints"), "checkpoint_interval_ms": 100}

    def copy(durable: rb.Session) -> rb.Pipeline:
        durable.create_stream("s", source=rb.Iceberg(lake.uri, "n.t", append_only=True))
        sink = rb.Json(str(tmp_path / "out"))
        return durable.sql("SELECT id FROM s").sink(sink, exactly_once=True, pipeline_id="copy")

    with rb.Session(settings) as durable, copy(durable).run(blocking=False) as running:
        while running.metrics()["epoch"] == 0 and running.metrics()["state"] != "failed":
            time.sleep(0.01)
        running.stop()
        running.wait()
    first = table.current_snapshot()
    table.append(sample(3, 3))
    table.append(sample(6, 3))
    assert first is not None
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    with rb.Session(settings) as durable, pytest.raises(rb.RiverbedSourceError, match="expired"):
        copy(durable).run(until="latest")


def test_they_read_what_we_write(session: rb.Session, lake: Lake) -> None:
    """Rows of all types, partitioned by every transform: pyiceberg's filters find rows only where it expects them."""
    session.sql(
        "CREATE TABLE rows AS SELECT i::INTEGER AS id, i * 1000000007 AS big,"
        " ((i % 7) * 1.25)::DECIMAL(9, 2) AS price, 'text ' || i % 5 AS t,"
        " TIMESTAMPTZ '2025-12-30 00:00:00+00' + to_hours(i::INTEGER * 5) AS at, DATE '2025-12-30' + i::INTEGER AS day,"
        " CASE WHEN i % 4 = 0 THEN NULL ELSE i % 3 = 0 END AS flag, [i, NULL] AS list, {'a': i, 'b': 'x'} AS st"
        " FROM range(40) r(i)"
    )
    want = rows_of(session.sql("SELECT * FROM rows").to_arrow())
    parts = [
        "id", "day", "t", "bucket(4, id)", "bucket(4, big)", "bucket(4, t)", "bucket(4, day)", "bucket(4, at)",
        "bucket(4, price)", "truncate(10, id)", "truncate(3, t)", "truncate(50, price)", "year(at)", "month(day)",
        "day(at)", "hour(at)",
    ]  # fmt: skip
    tables = []
    for n, part in enumerate(["", *parts]):
        of = f"connector = 'iceberg', catalog = '{lake.uri}', table = 'n.t{n}', partition_by = '{part}'"
        session.sql(f"CREATE SINK o{n} WITH ({of})")
        session.sql(f"INSERT INTO o{n} SELECT * FROM rows")
        table = lake.table(f"n.t{n}")
        assert rows_of(table.scan().to_arrow()) == want, part
        for name, at in (("id", 0), ("big", 1), ("price", 2), ("t", 3), ("at", 4), ("day", 5)):
            value = want[17][at]
            sought = value.isoformat() if isinstance(value, (dt.date, dt.datetime)) else value
            found = rows_of(table.scan(row_filter=EqualTo(name, sought)).to_arrow())
            assert found == [row for row in want if row[at] == value], (part, name)
        tables.append(table)
    assert by_duckdb(tables) == [want] * len(tables)
    for where, at in ((f"id = {want[17][0]}", 0), (f"rows.at = '{want[17][4].isoformat()}'", 4), ("t = 'text 2'", 3)):
        value = "text 2" if at == 3 else want[17][at]
        assert by_duckdb(tables, where) == [[row for row in want if row[at] == value]] * len(tables), where


def test_a_catalog_in_a_folder_that_is_not_there(session: rb.Session, tmp_path: pathlib.Path) -> None:
    """Reading says which; a sink makes it."""
    catalog = f"sqlite:///{tmp_path}/made/here/catalog.db"
    rows = f"SELECT * FROM iceberg_scan('n.t', catalog = '{catalog}')"
    with pytest.raises(rb.RiverbedError, match=f"no folder for the catalog {tmp_path}/made/here/catalog.db"):
        session.sql(rows).to_pylist()
    session.sql(f"CREATE SINK o WITH (connector = 'iceberg', catalog = '{catalog}', table = 'n.t')")
    session.sql("INSERT INTO o SELECT 1 AS a")
    assert session.sql(rows).to_pylist() == [{"a": 1}]


@pytest.fixture
def glue() -> Iterator[dict[str, str]]:
    """A Glue catalog that a server here imitates: what says where it is, to either side."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "glue.endpoint": f"http://{host}:{port}",
        "glue.region": "us-east-1",
        "glue.access-key-id": "test",
        "glue.secret-access-key": "test",
    }
    server.stop()


def test_a_glue_catalog(session: rb.Session, glue: dict[str, str], tmp_path: pathlib.Path) -> None:
    """Both sides write to a table that we made, and both read all of it."""
    theirs = GlueCatalog("default", warehouse=f"file://{tmp_path}", **glue)
    theirs.create_namespace("n")
    of = f"catalog = 'glue', catalog_properties = '{','.join(f'{k}={v}' for k, v in glue.items())}'"
    session.sql(f"CREATE SINK o WITH (connector = 'iceberg', {of}, table = 'n.t', warehouse = 'file://{tmp_path}')")
    session.sql("INSERT INTO o SELECT 1 AS a, 'one' AS b")
    table = theirs.load_table("n.t")
    table.append(pa.table({"a": pa.array([2], pa.int32()), "b": ["two"]}))
    session.sql("INSERT INTO o SELECT 3 AS a, 'three' AS b")
    want = [(1, "one"), (2, "two"), (3, "three")]
    assert rows_of(table.refresh().scan().to_arrow()) == want
    assert rows_of(session.sql(f"SELECT * FROM iceberg_scan('n.t', {of})").to_arrow()) == want


def test_by_key(session: rb.Session, lake: Lake) -> None:
    """A table by key that pyiceberg changes too: rows under our keys are replaced, whoever wrote them, no others."""
    table = lake.theirs.create_table("n.t", Schema(NestedField(1, "k", LongType()), NestedField(2, "n", LongType())))
    table.append(pa.table({"k": pa.array([1, 2, 30], pa.int64()), "n": pa.array([10, 20, 300], pa.int64())}))
    stream = rb.MemoryStream()
    session.create_stream("s", source=stream, schema={"k": "BIGINT"})
    counts = session.sql("SELECT k, count(*) AS n FROM s GROUP BY k")
    with counts.sink(rb.Iceberg(lake.uri, "n.t", key="k")).run(blocking=False) as running:
        stream.push([(1,), (1,), (2,)])
        stream.end()
        running.wait()
    assert theirs(lake) == [(1, 2), (2, 1), (30, 300)]
    assert by_duckdb([lake.table()]) == [theirs(lake)]
    assert ours(session, lake) == theirs(lake)
    table.refresh()
    table.delete(EqualTo("k", 2))
    assert ours(session, lake) == [(1, 2), (30, 300)]


def test_the_class(lake: Lake) -> None:
    assert "secret" not in repr(rb.Iceberg("postgresql://u:secret@h/d", "a.b", credential="id:secret", token="secret"))
    with pytest.raises(rb.RiverbedUsageError, match="partition_by"):
        rb.Iceberg(lake.uri, "a.b", partition="x")


def test_decimals_and_uuids_of_theirs(session: rb.Session, lake: Lake) -> None:
    rows = pa.table(
        {
            "d": pa.array([decimal.Decimal("-1.25"), None], pa.decimal128(38, 2)),
            "u": pa.array([uuid.UUID(int=7).bytes, None], pa.uuid()),
            "b": pa.array([b"\x00\xff", b""], pa.binary()),
            "t": pa.array([dt.time(23, 59, 59, 1), None], pa.time64("us")),
        }
    )
    lake.theirs.create_table("n.t", rows.schema).append(rows)
    # Arrow has UUIDs of both as 16 bytes; to_pylist makes text of theirs alone.
    named = f"iceberg_scan('n.t', catalog = '{lake.uri}')"
    assert rows_of(session.sql(f"SELECT d, u::VARCHAR AS u, b, t FROM {named}").to_arrow()) == theirs(lake)
