"""A Flight service in the test's process: tables, streams, rows that were written, and what goes wrong on purpose."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])


def rows(first: int, n: int) -> pa.RecordBatch:
    """Rows that tell themselves apart."""
    return pa.record_batch(
        [pa.array(range(first, first + n)), pa.array([f"r{i}" for i in range(first, first + n)])], SCHEMA
    )


def beside(**said: object) -> bytes:
    """App metadata as Riverbed writes them."""
    return json.dumps({f"riverbed.{k}": str(v) for k, v in said.items()}).encode()


class Auth(fl.ServerMiddlewareFactory):
    """Lets in who has the token; gives it for user and password."""

    def start_call(self, info: Any, headers: Any) -> Any:
        said = headers.get("authorization", [""])[0]
        if said == "Bearer sesame":
            return None
        if said.startswith("Basic ") and base64.b64decode(said[6:]) == b"app:open":
            return Gives()
        raise fl.FlightUnauthenticatedError(f"who are you with {said}?")


class Handshake(fl.ServerAuthHandler):
    """Lets calls be made that ask for a token; who asks is looked at by Auth."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        pass

    def is_valid(self, token: bytes) -> bytes:
        return b""


class Gives(fl.ServerMiddleware):
    def sending_headers(self) -> dict[str, str]:
        return {"authorization": "Bearer sesame"}


class Headers(fl.ServerMiddlewareFactory):
    """Notes the headers of calls."""

    def __init__(self) -> None:
        self.seen: list[dict[str, list[str]]] = []

    def start_call(self, info: Any, headers: Any) -> None:
        self.seen.append(dict(headers))


class Service(fl.FlightServerBase):
    """What is asked for names what happens: see `do_get` and `do_put`."""

    def __init__(self, location: str = "grpc://127.0.0.1:0", **arguments: Any) -> None:
        self.headers = Headers()
        middleware = {"headers": self.headers, **arguments.pop("middleware", {})}
        super().__init__(location, middleware=middleware, **arguments)
        self.puts: list[tuple[str, pa.Schema, list[tuple[Any, bytes]]]] = []
        self.fail_puts = 0
        self.break_at: int | None = None  # rows after which a stream breaks off, once
        self.go = threading.Event()
        self.gets: list[str] = []
        self.holds = threading.Event()  # from now on nobody is told where anything is
        self.asked = threading.Event()  # somebody who is not has asked

    @property
    def uri(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        what = descriptor.command.decode() if descriptor.command else "/".join(p.decode() for p in descriptor.path)
        if self.holds.is_set():
            self.asked.set()
            self.go.wait()
        if what.startswith("parts"):
            endpoints = [fl.FlightEndpoint(f"part {i}".encode(), [self.uri]) for i in range(3)]
            return fl.FlightInfo(SCHEMA, descriptor, endpoints, 300, -1)
        if what == "clear":
            return fl.FlightInfo(SCHEMA, descriptor, [fl.FlightEndpoint(b"part 0", ["grpc://127.0.0.1:1"])], -1, -1)
        if what == "nothing":
            raise fl.FlightServerError("there is no such thing: nothing")
        said = beside(replayable="true") if what == "kept" else b""
        schema = SCHEMA if what != "weighted" else SCHEMA.append(pa.field("__weight", pa.int64()))
        schema = schema if what != "marked" else pa.schema([("ts", pa.timestamp("us"))])
        return fl.FlightInfo(schema, descriptor, [fl.FlightEndpoint(what.encode(), [])], -1, -1, app_metadata=said)

    def do_get(self, context: Any, ticket: Any) -> Any:
        what = ticket.ticket.decode()
        self.gets.append(what)
        if what.startswith("part "):
            return fl.RecordBatchStream(pa.Table.from_batches([rows(100 * int(what[5:]), 100)]))
        if what == "silent":
            self.go.wait()
        if what == "kept":
            return fl.GeneratorStream(SCHEMA, self.kept(self.headers.seen[-1].get("riverbed-position", ["0"])[0]))
        if what == "breaks":
            return fl.GeneratorStream(SCHEMA, self.breaks())
        if what == "forever":
            return fl.GeneratorStream(SCHEMA, self.forever())
        if what == "weighted":
            return fl.GeneratorStream(SCHEMA.append(pa.field("__weight", pa.int64())), self.weighted())
        if what == "marked":
            return fl.GeneratorStream(pa.schema([("ts", pa.timestamp("us"))]), self.marked())
        return fl.RecordBatchStream(pa.Table.from_batches([rows(0, 10), rows(10, 10)]))

    def kept(self, position: str) -> Iterator[Any]:
        for at in range(int(position), 1000, 100):
            if self.break_at is not None and at >= self.break_at:
                self.break_at = None
                raise fl.FlightUnavailableError("going away")
            yield rows(at, 100), beside(position=at + 100)

    def breaks(self) -> Iterator[Any]:
        yield rows(0, 5)
        if self.break_at is not None:
            self.break_at = None
            raise fl.FlightUnavailableError("going away")
        yield rows(5, 5)

    def forever(self) -> Iterator[Any]:
        yield rows(0, 5)
        self.go.wait()
        yield rows(5, 5)

    def weighted(self) -> Iterator[Any]:
        schema = SCHEMA.append(pa.field("__weight", pa.int64()))
        first = [pa.array([1, 2]), pa.array(["a", "b"]), pa.array([1, 1], pa.int64())]
        second = [pa.array([1, 1]), pa.array(["a", "A"]), pa.array([-1, 1], pa.int64())]
        yield pa.record_batch(first, schema), beside(step=1)
        yield pa.record_batch(second, schema), beside(step=2)

    def marked(self) -> Iterator[Any]:
        schema = pa.schema([("ts", pa.timestamp("us"))])
        yield (
            pa.record_batch([pa.array([10_000_000, 50_000_000], pa.timestamp("us"))], schema),
            beside(watermark=60_000_000),
        )
        self.go.wait()
        yield pa.record_batch([pa.array([70_000_000], pa.timestamp("us"))], schema), b"a plain server's own"

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        what = descriptor.command.decode() if descriptor.command else "/".join(p.decode() for p in descriptor.path)
        got = []
        for chunk in reader:
            got.append((chunk.data, chunk.app_metadata.to_pybytes() if chunk.app_metadata is not None else b""))
        if what == "refuses":
            raise fl.FlightServerError("no room for token sesame")
        if self.fail_puts > 0:
            self.fail_puts -= 1
            raise fl.FlightUnavailableError("later")
        self.puts.append((what, reader.schema, got))

    def written(self) -> list[dict[str, Any]]:
        """All rows that were put."""
        return [row for _, _, batches in self.puts for batch, _ in batches for row in batch.to_pylist()]
