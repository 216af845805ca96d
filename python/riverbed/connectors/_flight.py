"""What talks to Arrow Flight services, for connectors/flight. Protocol: connectors/host."""

from __future__ import annotations

import base64
import contextlib
import json
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from riverbed import _arrow, _host
from riverbed.errors import RiverbedCancelledError, RiverbedSchemaError, RiverbedUsageError

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

# Rows that wait for a call that writes. Above that many bytes they go at once.
_FULL = 32 << 20

# A peer that is gone without a word is found out within so long.
_KEEPALIVE = [("grpc.keepalive_time_ms", 20_000), ("grpc.keepalive_timeout_ms", 10_000)]

_SAME = (b"", b"arrow-flight-reuse-connection://?")  # locations that mean the connection there is


def open(what: str, given: dict[str, Any], rows: pyarrow.RecordBatch | None) -> Any:
    """Make what the library asks for."""
    _arrow.need("pyarrow", "the connector 'flight'")
    _arrow.need("pyarrow.flight", "the connector 'flight'")
    service = _Service(given["options"])
    if what == "source":
        return _Source(service)
    assert rows is not None
    if what == "reader":
        return _Reader(service, given["split"], given["position"], given["names"], rows.schema)
    return _Sink(service, rows.schema)


class _Service:
    """A service, and how it is spoken to."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        self.location = options["location"]
        self._clients: dict[str, Any] = {}
        self._cancelled = threading.Event()
        self._waiting: set[threading.Event] = set()
        self._token: list[tuple[bytes, bytes]] | None = None

    def __str__(self) -> str:
        """Return what is read or written, and where, for messages."""
        what = self.options.get("ticket") or self.options.get("command") or "/".join(self.options.get("path", []))
        return f"{what:.60} of {self.location}"

    @property
    def flight(self) -> Any:
        return _arrow.need("pyarrow.flight", "the connector 'flight'")

    @contextlib.contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Say in our words what went wrong."""
        pa, fl = _arrow.need("pyarrow", "the connector 'flight'"), self.flight
        secrets = [self.options.get("token", ""), self.options.get("password", "")]
        secrets += [header.partition("=")[2] for header in self.options.get("headers", [])]
        secrets += [value.decode(errors="replace").removeprefix("Bearer ") for _, value in self._token or []]
        try:
            with _host.told(f"{self} cannot be {doing}", secrets, {
                fl.FlightUnauthenticatedError: "give a token, or user and password, that the service knows",
                fl.FlightUnauthorizedError: "ask who runs the service for the right, or use another token",
                fl.FlightUnavailableError: None,
                fl.FlightTimedOutError: None,
                fl.FlightCancelledError: None,
                pa.ArrowNotImplementedError: "the service does not offer this call",
                pa.ArrowKeyError: "check path, command or ticket",
            }):  # fmt: skip
                yield
        except _host.TransientError:
            if self._cancelled.is_set():
                raise _host.failed("it was cancelled", kind=RiverbedCancelledError) from None
            raise

    def client(self, location: str = "") -> Any:
        """Return the connection to a location; the service's own when it names none."""
        location = location or self.location
        if location not in self._clients:
            ours = self.location.startswith("grpc+tls:")
            if ours and not location.startswith("grpc+tls:"):
                raise _host.failed(
                    f"{self} is to be read from {location}, which is not encrypted",
                    "let the service name grpc+tls:// locations; credentials are not sent in the clear",
                )
            self._clients[location] = self.flight.FlightClient(
                location, generic_options=_KEEPALIVE, **(self._tls() if location.startswith("grpc+tls:") else {})
            )
        return self._clients[location]

    def _tls(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for option, argument in (("tls_ca", "tls_root_certs"), ("tls_cert", "cert_chain"), ("tls_key", "private_key")):
            if path := self.options.get(option):
                try:
                    out[argument] = pathlib.Path(path).read_bytes()
                except OSError as error:
                    raise _host.failed(
                        f"the file of {option} cannot be read: {error}", kind=RiverbedUsageError
                    ) from None
        if self.options.get("tls_skip_verify"):
            out["disable_server_verification"] = True
        return out

    def call_options(self, *headers: tuple[str, str], timeout: bool = True) -> Any:
        """Return the options of a call: credentials, further headers, and how long it may take."""
        if self._token is None:
            self._token = self._credentials()
        sent = list(self._token)
        for header in self.options.get("headers", []):
            name, _, value = header.partition("=")
            sent.append((name.strip().encode(), value.strip().encode()))
        sent += [(name.encode(), value.encode()) for name, value in headers]
        return self.flight.FlightCallOptions(timeout=self.options["timeout"] if timeout else None, headers=sent)

    def _credentials(self) -> list[tuple[bytes, bytes]]:
        if token := self.options.get("token"):
            return [(b"authorization", f"Bearer {token}".encode())]
        user, password = self.options.get("user"), self.options.get("password")
        if not user:
            return []
        limit = self.flight.FlightCallOptions(timeout=self.options["timeout"])
        client = self.client()
        header, value = self.within(lambda: client.authenticate_basic_token(user, password, limit))
        if header:
            return [(header, value)]
        # A service that wants both with every call gives no token.
        return [(b"authorization", b"Basic " + base64.b64encode(f"{user}:{password}".encode()))]

    def descriptor(self) -> Any:
        """Return what is read or written, as Flight names it."""
        kind = self.flight.FlightDescriptor
        if path := self.options.get("path"):
            return kind.for_path(*path)
        return kind.for_command(self.options["command"].encode())

    def endpoints(self) -> tuple[list[tuple[Any, list[str]]], Any]:
        """Return ticket and locations of each part, and what the service says of the whole; None for a ticket."""
        if ticket := self.options.get("ticket"):
            return [(self.flight.Ticket(ticket.encode()), [])], None
        client, options = self.client(), self.call_options()
        info = self.within(lambda: client.get_flight_info(self.descriptor(), options))
        parts = []
        for endpoint in info.endpoints:
            places = ["" if place.uri in _SAME else place.uri.decode() for place in endpoint.locations]
            parts.append((endpoint.ticket, places))
        return parts, info

    def within(self, call: Callable[[], T], calls: int = 1) -> T:
        """Run what cannot be cancelled.

        Who does not want to wait for its end, or for longer than so many calls may take, leaves it behind.
        """
        done: list[Any] = []
        ready = threading.Event()

        def work() -> None:
            try:
                done.append((call(), None))
            except BaseException as error:
                done.append((None, error))
            ready.set()

        limit = calls * self.options["timeout"]
        self._waiting.add(ready)
        try:
            if not self._cancelled.is_set():  # asked behind the line before: who cancels sets this first
                threading.Thread(target=work, name="riverbed-flight", daemon=True).start()
                ready.wait(limit)
        finally:
            self._waiting.discard(ready)
        if not done:
            if self._cancelled.is_set():
                raise _host.failed("it was cancelled", kind=RiverbedCancelledError)
            raise _host.failed(f"{self} has not answered within {limit:g} s", kind=_host.TransientError)
        value, error = done[0]
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def cancel(self) -> None:
        """Let what waits return."""
        self._cancelled.set()
        for ready in list(self._waiting):
            ready.set()

    def close(self) -> None:
        """Hang up."""
        for client in self._clients.values():
            with contextlib.suppress(Exception):
                client.close()
        self._clients.clear()


class _Source:
    def __init__(self, service: _Service) -> None:
        self.service = service
        self.cancel, self.close = service.cancel, service.close

    def describe(self) -> tuple[dict[str, Any], pyarrow.RecordBatch]:
        service = self.service
        with service.errors("read"):
            parts, info = service.endpoints()
            schema = info.schema if info is not None else None
            if schema is None:
                options = service.call_options(timeout=False)
                reader = service.within(lambda: _begin(service, parts[0], options))
                schema = reader.schema
                reader.cancel()
        about = {
            "where": str(service),
            "rows": info.total_records if info is not None else -1,
            "splits": len(parts),
            "replayable": info is not None and _replayable(getattr(info, "app_metadata", None)),
        }
        if not schema.names:
            raise _host.failed(f"{service} has no columns", kind=RiverbedSchemaError)
        return about, _no_rows(schema)


def _replayable(said: bytes | None) -> bool:
    try:
        value = json.loads(said or b"{}")
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("riverbed.replayable") == "true"


def _begin(service: _Service, part: tuple[Any, list[str]], options: Any) -> Any:
    """Begin to read a part, at the first of its locations that answers."""
    ticket, places = part
    last = len(places) - 1
    for i, place in enumerate(places or [""]):
        try:
            reader = service.client(place).do_get(ticket, options)
            reader.schema  # noqa: B018 - it comes with the first message
            return reader
        except service.flight.FlightUnavailableError:
            if i >= last:
                raise
    raise AssertionError("no location")


class _Reader:
    def __init__(self, service: _Service, split: int, position: str, names: list[str], schema: pyarrow.Schema) -> None:
        self.service, self._schema, self._names = service, schema, names
        self._split, self._position = split, position
        self._reader: Any = None

    def connect(self) -> None:
        """Begin to read."""
        service, split = self.service, self._split
        headers = [("riverbed-position", self._position)] if self._position else []
        with service.errors("read"):
            parts, _ = service.endpoints()
            if split >= len(parts):
                raise _host.failed(
                    f"{service} has {len(parts)} parts, and had {split + 1} or more when it was declared"
                )
            options = service.call_options(*headers, timeout=False)
            self._reader = service.within(lambda: _begin(service, parts[split], options))
        self._check()

    def _check(self) -> None:
        have = self._reader.schema.names
        for name in self._names:
            if have.count(name) != 1:
                raise _host.failed(
                    f"{self.service} has {'no' if name not in have else 'more than one'} column {name!r}",
                    f"it has {', '.join(have)}; declare the source anew",
                    RiverbedSchemaError,
                )

    def next(self) -> tuple[dict[str, Any], pyarrow.RecordBatch | None]:
        pa = _arrow.need("pyarrow", "the connector 'flight'")
        with self.service.errors("read on"):
            try:
                chunk = self._reader.read_chunk()
            except StopIteration:
                return {"end": True}, None
        beside = chunk.app_metadata.to_pybytes().decode(errors="replace") if chunk.app_metadata is not None else ""
        batch = chunk.data
        if batch is None or batch.num_rows == 0:
            return {"beside": beside}, None
        batch = batch.select(self._names)
        columns = []
        for column, have, want in zip(batch.columns, batch.schema, self._schema, strict=True):
            columns.append(_cast(pa, self.service, column, have, want))
        return {"beside": beside}, pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def cancel(self) -> None:
        self.service.cancel()
        if self._reader is not None:
            self._reader.cancel()

    def close(self) -> None:
        if self._reader is not None:
            with contextlib.suppress(Exception):
                self._reader.cancel()
        self.service.close()


def _cast(pa: Any, service: _Service, column: Any, have: Any, want: Any) -> Any:
    """Return a column in the library's layout; what does not fit is an error."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type == want.type:
        return column
    try:
        return column.cast(want.type, safe=True)
    except pa.ArrowException as error:
        text = str(error).partition("\n")[0]
        raise _host.failed(
            f"column {have.name!r} of {service} is {have.type}, and not all of it fits {want.type}: {text}"
        ) from None


class _Sink:
    """Rows wait until they are flushed, in one call. It may be made again: none is forgotten before its answer."""

    def __init__(self, service: _Service, schema: pyarrow.Schema) -> None:
        self.service, self._schema = service, schema
        self._waiting: list[tuple[Any, bytes]] = []
        self._bytes = 0
        self._told = ""  # beside the last rows of an epoch that has not ended

    def connect(self) -> None:
        """Find out at once who is not let in."""
        with self.service.errors("written"):
            self.service.client()
            self.service.call_options()

    def write(self, rows: pyarrow.RecordBatch, beside: str) -> dict[str, Any]:
        self._told = beside
        self._waiting.append((rows, beside.encode()))
        self._bytes += rows.nbytes
        return {"full": self._bytes >= _FULL}

    def flush(self, last: list[bytes] | None = None) -> None:
        messages = list(self._waiting)
        messages += [(_no_rows(self._schema), beside) for beside in last or []]
        if not messages:
            return
        with self.service.errors("written"):
            self.service.within(lambda: self._put(messages), 2)
        self._waiting, self._bytes = [], 0

    def _put(self, messages: list[tuple[Any, bytes]]) -> None:
        pa = _arrow.need("pyarrow", "the connector 'flight'")
        options = self.service.call_options()
        writer, answers = self.service.client().do_put(self.service.descriptor(), self._schema, options)
        with contextlib.closing(writer):
            for rows, beside in messages:
                writer.write_with_metadata(rows, pa.py_buffer(beside))
            writer.done_writing()
            while answers.read() is not None:
                pass

    def stage(self, epoch: int, beside: str = "") -> dict[str, Any]:
        """Have all rows taken. An epoch that has some, or a watermark to tell, ends with a message without rows."""
        if self._told or beside:
            said = json.loads(beside or self._told)
            said["riverbed.barrier"] = str(epoch)
            self.flush([json.dumps(said, separators=(",", ":"), sort_keys=True).encode()])
            self._told = ""
        return {"committable": None}

    def cancel(self) -> None:
        self.service.cancel()

    def close(self) -> None:
        self.service.close()


def _no_rows(schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    pa = _arrow.need("pyarrow", "the connector 'flight'")
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
