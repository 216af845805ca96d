"""Arrow Flight, against a service of pyarrow on loopback."""

from __future__ import annotations

import contextlib
import gc
import json
import pathlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import riverbed as rb
from riverbed import _host
from riverbed.connectors import _flight

from .flightserver import SCHEMA, Auth, Handshake, Service, beside, rows

pytestmark = pytest.mark.usefixtures("leaks_nothing")


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as made:
        yield made
        made.go.set()


@pytest.fixture
def session() -> Iterator[rb.Session]:
    with rb.Session() as made:
        yield made
    del made
    gc.collect()


def create(session: rb.Session, service: Service, what: str = "t", kind: str = "TABLE", **options: object) -> None:
    given = {"location": service.uri, "command": what, **options}
    written = ", ".join(f"{k} = '{v}'" for k, v in given.items())
    session.sql(f"CREATE {kind} f WITH (connector = 'flight', {written})")


def stream(session: rb.Session, sql: str, until: str | None = "latest") -> list[dict[str, Any]]:
    with session.sql(sql).subscribe(until=until) as changes:
        return [row for batch in changes for row in batch]


def pushed(session: rb.Session, *batches: list[tuple[int, str]], **options: Any) -> rb.MemoryStream:
    source = rb.MemoryStream(**options)
    session.create_stream("words", source=source, schema={"k": "BIGINT", "s": "VARCHAR"})
    for batch in batches:
        source.push(batch)
    return source


# --- reading ---------------------------------------------------------------------------------------------------------


def test_a_table(session: rb.Session, service: Service) -> None:
    create(session, service)
    assert session.sql("SELECT count(*) AS n, sum(k) AS s FROM f").to_pylist() == [{"n": 20, "s": 190}]
    assert session.sql("SELECT s FROM f WHERE k = 7").to_pylist() == [{"s": "r7"}]
    assert session.sql("SELECT count(*) AS n FROM f").to_pylist() == [{"n": 20}]


def test_endpoints_path_and_class(session: rb.Session, service: Service) -> None:
    session.create_table("f", source=rb.Flight(service.uri, path=["parts", "of", "it"]))
    assert session.sql("SELECT count(DISTINCT k) AS n, max(k) AS m FROM f").to_pylist() == [{"n": 300, "m": 299}]
    session.create_stream("g", source=rb.Flight(service.uri, path=["parts", "of", "it"]))
    assert len(stream(session, "SELECT k FROM g")) == 300


def test_a_ticket(session: rb.Session, service: Service) -> None:
    session.create_table("f", source=rb.Flight(service.uri, ticket="part 2"))
    assert session.sql("SELECT min(k) AS k FROM f").to_pylist() == [{"k": 200}]


def test_declared_columns(session: rb.Session, service: Service) -> None:
    session.create_table("f", source=rb.Flight(service.uri, command="t"), schema={"s": "VARCHAR", "k": "DOUBLE"})
    assert session.sql("SELECT * FROM f LIMIT 1").to_pylist() == [{"s": "r0", "k": 0.0}]
    with pytest.raises(rb.RiverbedSchemaError, match=r'no column "ss"[\s\S]*did you mean "s"'):
        session.create_table("g", source=rb.Flight(service.uri, command="t"), schema={"ss": "VARCHAR"})
    with pytest.raises(rb.RiverbedSchemaError, match=r"declared as INTEGER, and t of .* has BIGINT"):
        session.create_table("g", source=rb.Flight(service.uri, command="t"), schema={"k": "INTEGER"})


def test_a_stream_goes_on(session: rb.Session, service: Service) -> None:
    create(session, service, "forever", "STREAM")
    with session.sql("SELECT k FROM f").subscribe() as changes:
        seen = [row["k"] for row in next(iter(changes))]
        assert seen == [0, 1, 2, 3, 4]
        service.go.set()
        assert [row["k"] for row in next(iter(changes))] == [5, 6, 7, 8, 9]


def test_a_stream_that_waits_is_stopped(session: rb.Session, service: Service) -> None:
    create(session, service, "forever", "STREAM")
    seen: list[Any] = []
    handle = session.sql("SELECT k FROM f").sink(seen.extend).run(blocking=False)
    while len(seen) < 5:
        time.sleep(0.01)
    began = time.monotonic()
    handle.stop()
    assert time.monotonic() - began < 5
    assert handle.metrics()["state"] == "stopped"


def test_a_stream_that_is_being_opened_is_stopped(session: rb.Session, service: Service) -> None:
    create(session, service, "forever", "STREAM", timeout="10m")
    service.holds.set()
    handle = session.sql("SELECT k FROM f").sink(lambda _: None).run(blocking=False)
    service.asked.wait()
    began = time.monotonic()
    handle.stop()
    assert time.monotonic() - began < 60
    assert handle.metrics()["state"] == "stopped"


def test_changes_have_weights(session: rb.Session, service: Service) -> None:
    create(session, service, "weighted", "STREAM")
    changes = stream(session, "SELECT k, s FROM f EMIT IMMEDIATE")
    total: dict[Any, int] = {}
    for row in changes:
        total[row["k"], row["s"]] = total.get((row["k"], row["s"]), 0) + row["__weight"]
    assert {k for k, w in total.items() if w} == {(1, "A"), (2, "b")}
    with pytest.raises(rb.RiverbedUnsupportedError, match="CREATE STREAM"):
        session.create_table("g", source=rb.Flight(service.uri, command="weighted"))


def test_watermarks_come_beside_the_rows(session: rb.Session, service: Service) -> None:
    session.create_stream("f", source=rb.Flight(service.uri, command="marked", event_time="ts"))
    sql = "SELECT count(*) AS n FROM f GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK"
    with session.sql(sql).subscribe() as changes:
        first = next(row for batch in changes for row in batch)  # closed by the watermark, as the stream goes on
    assert first["n"] == 2


def test_a_stream_with_positions_goes_on_where_it_broke_off(session: rb.Session, service: Service) -> None:
    service.break_at = 500
    create(session, service, "kept", "STREAM")
    assert [row["k"] for row in stream(session, "SELECT k FROM f")] == list(range(1000))
    assert service.gets == ["kept", "kept"]


def test_a_stream_without_positions_does_not_go_on_by_itself(session: rb.Session, service: Service) -> None:
    service.break_at = 5
    create(session, service, "breaks", "STREAM")
    with pytest.raises(rb.RiverbedSourceError, match=r"broke off, and cannot go on[\s\S]*on_break = 'restart'"):
        stream(session, "SELECT k FROM f")
    service.break_at = 5
    session.create_stream("g", source=rb.Flight(service.uri, command="breaks", on_break="restart"))
    assert [row["k"] for row in stream(session, "SELECT k FROM g")] == [*range(5), *range(10)]


def test_exactly_once_wants_positions(service: Service, tmp_path: pathlib.Path) -> None:
    with rb.Session({"checkpoint_url": str(tmp_path / "c")}) as session:
        create(session, service, "breaks", "STREAM")
        query = session.sql("SELECT k FROM f")
        with pytest.raises(rb.RiverbedExactlyOnceError, match="cannot be read again"):
            query.sink(rb.Json(tmp_path / "out"), exactly_once=True).run()
        session.create_stream("g", source=rb.Flight(service.uri, command="kept"))
        service.break_at = 300
        pipeline = session.sql("SELECT k FROM g").sink(rb.Json(tmp_path / "out"), exactly_once=True)
        pipeline.run(until="latest")
        got = [
            json.loads(line)["k"]
            for f in sorted((tmp_path / "out").glob("*.json*"))
            for line in f.read_text().splitlines()
        ]
        assert sorted(got) == list(range(1000))
        query.close()


def test_a_table_is_refused_under_exactly_once(service: Service, tmp_path: pathlib.Path) -> None:
    with rb.Session({"checkpoint_url": str(tmp_path / "c")}) as session:
        create(session, service)
        session.create_stream("g", source=rb.Flight(service.uri, command="kept"))
        query = session.sql("SELECT g.k FROM g JOIN f ON g.k = f.k")
        with pytest.raises(rb.RiverbedExactlyOnceError, match='"f" cannot be read again'):
            query.sink(rb.Json(tmp_path / "out"), exactly_once=True)


# --- writing ---------------------------------------------------------------------------------------------------------


def test_rows_are_put(session: rb.Session, service: Service) -> None:
    pushed(session, [(1, "a"), (2, "b")], [(3, "c")]).end()
    session.sql("SELECT k, s FROM words").sink(rb.Flight(service.uri, path=["out"])).run()
    assert service.written() == [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}, {"k": 3, "s": "c"}]
    what, schema, batches = service.puts[0]
    assert (what, schema.names) == ("out", ["k", "s"])
    said = json.loads(batches[0][1])
    assert said["riverbed.step"] == "1"
    last, beside = batches[-1]
    assert last.num_rows == 0
    assert "riverbed.barrier" in json.loads(beside)


def test_an_epoch_ends_though_its_rows_are_gone(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_flight, "_FULL", 1)
    given = {"options": {"location": service.uri, "path": ["out"], "timeout": 30.0}}
    to = _flight.open("sink", given, rows(0, 0))
    to.connect()
    for epoch in (1, 2):
        assert to.write(rows(epoch, 1), beside(step=epoch).decode()) == {"full": True}
        to.flush()
        for _ in range(2):  # the second has nothing to end
            to.stage(epoch)
    to.close()
    said = [json.loads(b) for _, _, batches in service.puts for _, b in batches]
    assert [(s["riverbed.step"], s.get("riverbed.barrier")) for s in said] == [
        ("1", None), ("1", "1"), ("2", None), ("2", "2"),
    ]  # fmt: skip


def test_changes_are_put_with_weights(session: rb.Session, service: Service) -> None:
    source = pushed(session, [(1, "a"), (1, "a")])
    source.end()
    session.sql(f"CREATE SINK out WITH (connector = 'flight', location = '{service.uri}', command = 'c')")
    session.sql("INSERT INTO out SELECT s, count(*) AS n FROM words GROUP BY s EMIT IMMEDIATE").pipeline().run()
    total: dict[Any, int] = {}
    for row in service.written():
        total[row["s"], row["n"]] = total.get((row["s"], row["n"]), 0) + row["__weight"]
    assert {k for k, w in total.items() if w} == {("a", 2)}


def test_a_put_that_fails_is_made_again(session: rb.Session, service: Service) -> None:
    service.fail_puts = 2
    pushed(session, [(1, "a")]).end()
    session.sql("SELECT k, s FROM words").sink(rb.Flight(service.uri, path="out")).run()
    assert service.written() == [{"k": 1, "s": "a"}]


def test_a_put_that_is_refused_ends_the_run(session: rb.Session, service: Service) -> None:
    pushed(session, [(1, "a")]).end()
    sink = rb.Flight(service.uri, path="refuses", token="sesame")
    with pytest.raises(rb.RiverbedSourceError, match=r"refuses of grpc://.* cannot be written: .*no room") as raised:
        session.sql("SELECT k, s FROM words").sink(sink).run()
    assert "sesame" not in str(raised.value)


def test_it_is_at_least_once(service: Service, tmp_path: pathlib.Path) -> None:
    with rb.Session({"checkpoint_url": str(tmp_path)}) as session:
        pushed(session).end()
        with pytest.raises(rb.RiverbedExactlyOnceError, match="cannot take each row exactly once"):
            session.sql("SELECT k FROM words").sink(rb.Flight(service.uri, path="x"), exactly_once=True).run()


def test_all_types_go_and_come_back(session: rb.Session, service: Service) -> None:
    sql = """SELECT true AS b, 1::TINYINT AS i8, 18446744073709551615::UBIGINT AS u64, -5::HUGEINT AS h,
        1.5::FLOAT AS f,
        1.25::DECIMAL(9, 2) AS d, 'é' AS s, 'a'::BLOB AS z, DATE '1969-12-31' AS dt, TIME '23:59:59.5' AS t,
        TIMESTAMP '2020-02-29 12:00:00.5' AS ts, TIMESTAMPTZ '2020-01-01 00:00:00+02' AS tz, INTERVAL '1 month' AS iv,
        '550e8400-e29b-41d4-a716-446655440000'::UUID AS u, [1, NULL] AS l, {'a': 'x'} AS st,
        MAP {'k': 1} AS m, NULL::VARCHAR AS n"""
    query = session.sql(sql)
    want, kinds = query.to_pylist(), query.schema
    session.sql(f"CREATE SINK out WITH (connector = 'flight', location = '{service.uri}', command = 'c')")
    session.sql(f"INSERT INTO out {sql}")
    back = next(batch for batch, _ in service.puts[0][2] if batch.num_rows)
    session.create_table("back", source=pa.Table.from_batches([back]))
    assert session.sql("SELECT * FROM back").to_pylist() == want
    assert session.sql("SELECT * FROM back").schema == kinds


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'needs the option "location"'),
        ({"location": "grpc://a:1"}, "0 of the options path, command, ticket say what is meant"),
        ({"location": "grpc://a:1", "path": "a", "ticket": "b"}, "2 of the options"),
        ({"location": "http://a:1", "path": "a"}, "no address of a Flight service"),
        ({"location": "grpc://u:secret@a:1", "path": "a"}, "holds a user"),
        ({"location": "grpc://a:1", "path": "a", "tls_ca": "x"}, "is not encrypted"),
        ({"location": "grpc+tls://a:1", "path": "a", "tls_cert": "x"}, "one of tls_cert and tls_key"),
        ({"location": "grpc+tls://a:1", "path": "a", "tls_ca": "/none"}, "the file of tls_ca cannot be read"),
        ({"location": "grpc://a:1", "path": "a", "user": "u"}, "one of user and password"),
        ({"location": "grpc://a:1", "path": "a", "headers": "secret"}, "one of the headers is none"),
        ({"location": "grpc://a:1", "path": "a", "timeout": "0s"}, "the timeout is not positive"),
        ({"location": "grpc://a:1", "path": "a", "tocken": "secret"}, 'did you mean "token"'),
    ],
)
def test_options_are_checked(session: rb.Session, options: dict[str, str], message: str) -> None:
    written = ", ".join(f"{k} = '{v}'" for k, v in options.items())
    with pytest.raises(rb.RiverbedUsageError, match=message) as raised:
        session.sql(f"CREATE TABLE f WITH (connector = 'flight'{', ' if written else ''}{written})")
    assert "secret" not in str(raised.value)


def test_nobody_is_there(session: rb.Session) -> None:
    with pytest.raises(rb.RiverbedSourceError, match=r"cannot be read: .*tried 5 times"):
        session.create_table("f", source=rb.Flight("grpc://127.0.0.1:1", path="a", timeout="2s"))


def test_what_the_service_says_is_told(session: rb.Session, service: Service) -> None:
    with pytest.raises(rb.RiverbedSourceError, match=r"nothing of grpc://.* cannot be read: there is no such thing"):
        create(session, service, "nothing")


def test_a_service_that_does_not_answer(session: rb.Session, service: Service) -> None:
    with pytest.raises(rb.RiverbedSourceError, match=r"has not answered within 0.2 s"):
        session.create_table("f", source=rb.Flight(service.uri, ticket="silent", timeout="200ms"))


def test_token_and_password(session: rb.Session) -> None:
    with Service(middleware={"auth": Auth()}, auth_handler=Handshake()) as service:
        for given in ({"token": "sesame"}, {"user": "app", "password": "open"}):
            session.sql("DROP TABLE IF EXISTS f")
            create(session, service, **given)
            assert session.sql("SELECT count(*) AS n FROM f").to_pylist() == [{"n": 20}]
        session.sql("DROP TABLE f")
        with pytest.raises(rb.RiverbedSourceError, match="give a token") as raised:
            create(session, service, token="wr0ng", headers="x-key=hidden")
        assert "wr0ng" not in str(raised.value)
        assert "hidden" not in str(raised.value)


def test_headers_are_sent(session: rb.Session, service: Service) -> None:
    create(session, service, headers="x-tenant=acme")
    assert service.headers.seen[-1]["x-tenant"] == ["acme"]


def certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_tls(session: rb.Session, tmp_path: pathlib.Path) -> None:
    cert, key = certificate(tmp_path)
    with Service("grpc+tls://localhost:0", tls_certificates=[(cert.read_bytes(), key.read_bytes())]) as service:
        where = f"grpc+tls://localhost:{service.port}"
        session.create_table("f", source=rb.Flight(where, ticket="part 1", tls_ca=cert))
        assert session.sql("SELECT min(k) AS k FROM f").to_pylist() == [{"k": 100}]
        with pytest.raises(rb.RiverbedSourceError):
            session.create_table("g", source=rb.Flight(where, ticket="part 1", timeout="2s"))
        session.create_table("g", source=rb.Flight(where, command="clear", tls_ca=cert))
        with pytest.raises(rb.RiverbedSourceError, match="which is not encrypted"):
            session.sql("SELECT * FROM g").to_pylist()


SERVER = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from flightserver import Service
    service = Service()
    print(service.port, flush=True)
    service.serve()
"""


def test_the_server_dies_in_the_midst(session: rb.Session) -> None:
    here = str(pathlib.Path(__file__).parent)
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SERVER), here], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        where = f"grpc://127.0.0.1:{int(process.stdout.readline())}"
        session.create_stream("f", source=rb.Flight(where, command="forever"))
        with session.sql("SELECT k FROM f").subscribe() as changes:
            assert len(list(next(iter(changes)))) == 5
            process.kill()
            with pytest.raises(rb.RiverbedSourceError, match="broke off"):
                list(changes)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_memory_goes_back(session: rb.Session, service: Service) -> None:
    before = pa.total_allocated_bytes()
    create(session, service, "parts")
    for _ in range(3):
        session.sql("SELECT * FROM f").to_pylist()
    source = pushed(session)
    pipeline = session.sql("SELECT k, s FROM words").sink(rb.Flight(service.uri, path="out"))
    for i in range(20):
        source.push(rows(i, 1000))
    source.end()
    pipeline.run()
    service.puts.clear()
    gc.collect()
    assert pa.total_allocated_bytes() - before < 1 << 16


def test_objects_go_back(session: rb.Session, service: Service) -> None:
    assert not _host._objects
    create(session, service, "parts")
    session.create_stream("g", source=rb.Flight(service.uri, command="breaks"))
    session.sql("SELECT * FROM f").to_pylist()
    with contextlib.closing(session.sql("SELECT k FROM f").batches()) as batches:  # and is not read to its end
        next(batches)
    service.break_at = 5
    pipeline = session.sql("SELECT k FROM g").sink(rb.Flight(service.uri, path="out"))
    with pytest.raises(rb.RiverbedSourceError, match="broke off"):
        pipeline.run()
    with pytest.raises(rb.RiverbedSourceError, match="cannot be read"):
        session.create_table("h", source=rb.Flight(service.uri, command="nothing"))
    assert not _host._objects


def test_what_is_cancelled_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of a connector may take seconds to be imported."""
    cancelled: list[str] = []

    class Made:
        def cancel(self) -> None:
            cancelled.append("made")

        def connect(self) -> None:
            cancelled.append("connected")

        def close(self) -> None:
            cancelled.append("closed")

    def slow(*_: Any) -> Any:
        _host._answer({"connector": "flight", "object": -1, "call": "cancel"}, None)
        return Made()

    monkeypatch.setattr(_flight, "open", slow)
    _host._answer({"connector": "flight", "object": -1, "call": "source"}, None)
    _host._answer({"connector": "flight", "object": -1, "call": "close"}, None)
    assert cancelled == ["made", "connected", "closed"]
    assert not _host._objects


def test_types_of_other_layouts(session: rb.Session) -> None:
    class Other(Service):
        def get_flight_info(self, context: Any, descriptor: Any) -> Any:
            raise AssertionError

        def do_get(self, context: Any, ticket: Any) -> Any:
            import pyarrow.flight as fl

            return fl.RecordBatchStream(OTHER)

    with Other() as service:
        session.create_table("f", source=rb.Flight(service.uri, ticket="x"))
        assert session.sql("SELECT * FROM f").schema == [
            ("d", "VARCHAR"),
            ("l", "VARCHAR"),
            ("t", "TIMESTAMP WITH TIME ZONE"),
            ("h", "FLOAT"),
        ]
        assert session.sql("SELECT d, l, h FROM f").to_pylist() == [
            {"d": "a", "l": "x", "h": 1.5},
            {"d": "a", "l": None, "h": None},
        ]


OTHER = pa.table(
    {
        "d": pa.array(["a", "a"]).dictionary_encode(),
        "l": pa.array(["x", None], pa.large_string()),
        "t": pa.array([0, 1], pa.timestamp("ms", "Europe/Berlin")),
        "h": pa.array([1.5, None], pa.float16()),
    }
)
assert SCHEMA.names == ["k", "s"]
