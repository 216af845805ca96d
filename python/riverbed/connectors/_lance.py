"""What writes Lance tables, for connectors/lance. Protocol: connectors/host."""

from __future__ import annotations

import base64
import collections
import contextlib
import datetime
import json
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from riverbed import _arrow, _host
from riverbed.errors import RiverbedExactlyOnceError, RiverbedSchemaError, RiverbedUsageError

if TYPE_CHECKING:
    import pyarrow

_WEIGHT = "__weight"

# Rows that wait. Above that many bytes they are written to a file of the table, which is part of it with the commit.
_FULL = 64 << 20

# How long a commit may take, and how often one is begun anew when others were faster.
_LIMIT = datetime.timedelta(seconds=60)
_TURNS = 50

# After so many commits the marker is noted in the table's configuration, too.
_NOTE = 64


def open(what: str, given: dict[str, Any], rows: pyarrow.RecordBatch) -> Any:
    """Make what the library asks for: a sink."""
    try:
        import lance  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "lance":
            raise
        raise _host.failed(
            "the connector 'lance' needs the package pylance, which is not installed",
            "pip install riverbed[lance]",
            RiverbedUsageError,
        ) from None
    assert what == "sink"
    return _Sink(given, rows.schema)


class _Table:
    """A table, and the transactions on it."""

    def __init__(self, path: str, storage: list[str]) -> None:
        import lance

        self.lance = lance
        self.path = path
        pairs = [option.partition("=") for option in storage]
        self.storage = {name.strip(): value.strip() for name, _, value in pairs} or None
        self._secrets = [value.strip() for _, _, value in pairs]
        self._at: Any = None

    @contextlib.contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Say in our words what went wrong. What the store answers may be over when it is tried again."""
        with _host.told(f"the table {self.path} cannot be {doing}", self._secrets, {OSError: None}):
            yield

    def make(self, schema: pyarrow.Schema) -> None:
        """Make the table without rows. Another one may be faster."""
        pa = _arrow.need("pyarrow", "the connector 'lance'")
        with contextlib.suppress(OSError):
            self.lance.write_dataset(
                pa.Table.from_batches([], schema), self.path, mode="create", storage_options=self.storage
            )

    def latest(self) -> Any:
        """Return the table as it is now, or None where there is none.

        AIDEV-NOTE: what was returned stays at its version. Were it moved in place, an epoch that was looked for in one
        version would be committed upon a later one, which may have it already.
        """
        if self._at is None:
            try:
                self._at = self.lance.dataset(self.path, storage_options=self.storage)
            except (ValueError, OSError) as error:
                if "not found" not in str(error).lower():
                    raise
                return None
        self._at = self._at.checkout_version(self._at.latest_version)
        return self._at

    def again(self) -> Any:
        """Return the table as it is now, to be changed in place."""
        return self.lance.dataset(self.path, storage_options=self.storage)

    def commit(self, on: Any, operation: Any, said: dict[str, str]) -> Any:
        """Make one transaction, once. It fails where others came in between that it does not go with."""
        transaction = self.lance.Transaction(read_version=on.version, operation=operation, transaction_properties=said)
        # AIDEV-NOTE: no retries within: one whose answer was lost would find its own version, and add the rows again.
        return self.lance.LanceDataset.commit(
            on, transaction, storage_options=self.storage, max_retries=0, commit_timeout=_LIMIT
        )

    def is_conflict(self, error: BaseException) -> bool:
        """Whether others were faster, and nothing of ours is in the table."""
        from lance.commit import CommitConflictError

        return isinstance(error, CommitConflictError)

    def write(self, on: Any, rows: pyarrow.Table, schema: pyarrow.Schema) -> list[Any]:
        """Write rows to files of the table, which nobody reads before a transaction names them."""
        from lance.fragment import write_fragments

        return list(write_fragments(rows, on, schema=schema, mode="append", storage_options=self.storage))

    def read(self, file: str, columns: list[str] | None = None) -> pyarrow.Table:
        """Read a file that was written."""
        from lance.file import LanceFileReader

        where = f"{self.path.rstrip('/')}/data/{file}"
        return LanceFileReader(where, storage_options=self.storage, columns=columns).read_all().to_table()


class _Ledger:
    """Which epoch of a pipeline a table has.

    A marker is a property of the transaction that brought the epoch. Before the first commit of a process, and whenever
    an answer was lost, a transaction that changes nothing but goes with no other (a projection to the same columns)
    is made: what was begun before it, by whomever, fails from then on, or is seen behind it. So one looks, and
    commits upon what one saw. Transactions are forgotten when old versions are removed; the configuration is
    not, and has a marker from which on they are looked through.
    """

    def __init__(self, table: _Table, pipeline: str) -> None:
        self.table = table
        self._marker, self._fence = f"riverbed.marker.{pipeline}", f"riverbed.fence.{pipeline}"
        self._token = uuid.uuid4().hex
        self.marker = ""
        self._version = 0  # up to which transactions were looked through
        self._doubt = True
        self._since = 0  # commits since the marker was noted

    def begin(self, first: str) -> str:
        with self.table.errors("read"):
            at = self.table.latest()
            noted = json.loads(at.config().get(self._marker, "{}"))
            if noted:
                self.marker, self._version = noted["marker"], noted["version"]
            else:  # it is noted before the first commit
                self._version = at.version
            self._settle()
            if not self.marker and first:
                self.marker = first
            if self.marker:
                self.note()
        return self.marker

    def note(self) -> None:
        """Note the marker where it is not forgotten."""
        at = self.table.again()
        at.update_config({self._marker: json.dumps({"marker": self.marker, "version": self._version})})
        self._since = 0

    def _settle(self) -> None:
        """Shut out what was begun and has not ended, then look."""
        for _ in range(_TURNS):
            at = self.table.latest()
            try:
                at = self.table.commit(
                    at, self.table.lance.LanceOperation.Project(at.lance_schema), {self._fence: self._token}
                )
            except Exception as error:
                if not self.table.is_conflict(error):
                    raise
                continue
            self._look(at, mine=True)
            self._doubt = False
            return
        raise _host.failed(f"the table {self.table.path} is changed by others all the time", kind=_host.TransientError)

    def _look(self, at: Any, mine: bool = False) -> None:
        """Look through what was committed since we last looked."""
        newest, told = self.marker, False
        for version in range(at.version, self._version, -1):
            try:
                said = at.read_transaction(version)
            except OSError:
                raise _host.failed(
                    f"version {version} of the table {self.table.path} was removed, "
                    "and with it what tells which rows of this pipeline the table has",
                    "keep versions for longer than a pipeline stands still; begin anew, with another id and table",
                    RiverbedExactlyOnceError,
                ) from None
            properties = (said.transaction_properties if said is not None else None) or {}
            if properties.get(self._fence, self._token) != self._token and not mine:
                raise _host.failed(
                    f"another process has taken this pipeline over: it writes to the table {self.table.path}",
                    "run one process of a pipeline, or give each its own pipeline_id",
                    RiverbedExactlyOnceError,
                )
            if not told and self._marker in properties:
                newest, told = properties[self._marker], True
        self.marker, self._version = newest, at.version

    def commit(self, marker: str, previous: str, operation: Any) -> None:
        """Bring an epoch in, or leave it when it is there. operation makes one of the table as it is."""
        for _ in range(_TURNS):
            if self._doubt:
                self._settle()
            at = self.table.latest()
            self._look(at)
            if self.marker == marker:
                return
            if self.marker != previous:
                raise _host.failed(
                    f"the table {self.table.path} has the epoch {self.marker or '(none)'} of this pipeline, "
                    f"and the one before {marker} is {previous}",
                    "the table and the checkpoints do not belong together",
                    RiverbedExactlyOnceError,
                )
            self._doubt = True
            try:
                done = self.table.commit(at, operation(at), {self._marker: marker, self._fence: self._token})
            except Exception as error:
                if not self.table.is_conflict(error):
                    raise
                self._doubt = False
                continue
            self._doubt = False
            self.marker, self._version = marker, done.version
            self._since += 1
            if self._since >= _NOTE:
                with contextlib.suppress(OSError):
                    self.note()
            return
        raise _host.failed(f"the table {self.table.path} is changed by others all the time", kind=_host.TransientError)

    def close(self) -> None:
        if self._since and not self._doubt:
            with contextlib.suppress(Exception):
                self.note()


class _Sink:
    def __init__(self, given: dict[str, Any], schema: pyarrow.Schema) -> None:
        self._pa = _arrow.need("pyarrow", "the connector 'lance'")
        options = given["options"]
        self._key: list[str] = options.get("key") or []
        self._columns = self._pa.schema([f for f in schema if not self._key or f.name != _WEIGHT])
        # Epochs are committed while the rows of the next one are written.
        self._table = _Table(options["path"], options.get("storage_options") or [])
        self._writes = _Table(options["path"], options.get("storage_options") or [])
        self._ledger = _Ledger(self._table, given["pipeline"]) if given["exactly_once"] else None
        self._waiting: list[Any] = []  # batches; with a key (step, batch)
        self._bytes = 0
        self._fragments: list[Any] = []  # written and not staged
        self._verified: set[str] = set()  # files that we wrote
        with self._table.errors("opened"):
            self._open(options["create"])

    def _open(self, create: bool) -> None:
        at = self._table.latest()
        if at is None:
            if not create:
                raise _host.failed(f"there is no Lance table {self._table.path}", "make it, or set create = true")
            self._table.make(self._columns)
            at = self._table.latest()
            if at is None:
                raise OSError("it cannot be made")
        have = {f.name: f.type for f in at.schema}
        for field in self._columns:
            if field.name not in have:
                raise _host.failed(
                    f"the table {self._table.path} has no column {field.name!r}",
                    f"it has {', '.join(have)}; name the columns of the query so",
                    RiverbedSchemaError,
                )
            if have[field.name] != field.type:
                raise _host.failed(
                    f"column {field.name!r} of the table {self._table.path} is {have[field.name]}, "
                    f"and the query gives {field.type}",
                    "cast it in the query",
                    RiverbedSchemaError,
                )
        missing = [f.name for f in at.schema if f.name not in self._columns.names]
        if missing:
            raise _host.failed(
                f"the query has no column for {missing[0]!r} of the table {self._table.path}",
                "add it to the query, NULL AS … for instance",
                RiverbedSchemaError,
            )
        self._columns = self._pa.schema([self._columns.field(f.name) for f in at.schema])

    def write(self, rows: pyarrow.RecordBatch, beside: str) -> dict[str, Any]:
        if self._key:
            # With a key all waits: which change of a row is the last is known at the end.
            self._waiting.append((json.loads(beside).get("riverbed.step", "0"), rows))
            return {}
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        return {"full": self._bytes >= _FULL}

    def flush(self) -> None:
        if self._key or not self._waiting:
            return
        with self._table.errors("written"):
            rows = self._pa.Table.from_batches(self._waiting).select(self._columns.names)
            self._fragments += self._write(rows, self._columns)
        self._waiting, self._bytes = [], 0

    def _write(self, rows: pyarrow.Table, schema: pyarrow.Schema) -> list[Any]:
        made = self._writes.write(self._writes.latest(), rows, schema)
        self._verified.update(file.path for f in made for file in f.files)
        return made

    def stage(self, epoch: int, beside: str = "") -> dict[str, Any]:
        gone: list[Any] = []
        if self._key:
            if self._waiting:
                stays, goes = self._last()
                with self._table.errors("written"):
                    fragments = self._write(stays, self._columns) if stays.num_rows else []
                    keys = self._pa.schema([self._columns.field(name) for name in self._key])
                    gone = self._write(goes, keys) if goes.num_rows else []
                self._fragments = fragments
        else:
            self.flush()
        if not self._fragments and not gone:
            return {"committable": None}
        staged = {
            "fragments": [f.to_json() for f in self._fragments],
            "gone": [file.path for f in gone for file in f.files],
        }
        if self._ledger is None:
            self._show(staged)
            self._done()
            return {"committable": None}
        self._done()
        return {"committable": base64.b64encode(json.dumps(staged).encode()).decode()}

    def _done(self) -> None:
        self._fragments, self._waiting = [], []

    def _last(self) -> tuple[pyarrow.Table, pyarrow.Table]:
        """Return the rows that stand at the end of the epoch, one of a key, and the keys of those that do not.

        In one step the row that comes counts, whatever goes; of several steps the last one that has the key.
        """
        pa, pc = self._pa, _arrow.need("pyarrow.compute", "the connector 'lance'")
        rows = pa.Table.from_batches([batch for _, batch in self._waiting])
        steps: list[int] = []
        number, before = -1, None
        for step, batch in self._waiting:
            number, before = number + (step != before), step
            steps += [number] * batch.num_rows
        comes = pc.greater(rows[_WEIGHT], 0)
        order = pc.add(pc.multiply(pa.array(steps, pa.int64()), 2), pc.cast(comes, pa.int64()))
        places = pa.table({"order": order, "row": pa.array(range(rows.num_rows), pa.int64())})
        ranked = places.sort_by([("order", "ascending"), ("row", "ascending")])["row"]
        codes = _codes(pa, pc, [rows[k] for k in self._key], [rows[k] for k in self._key]).take(ranked)
        by = pa.table({"code": codes, "rank": pa.array(range(rows.num_rows), pa.int64())})
        last = by.group_by("code").aggregate([("rank", "max")])["rank_max"]
        chosen = ranked.take(pc.take(last, pc.array_sort_indices(last)))
        rows, comes = rows.take(chosen), pc.take(comes, chosen)
        return rows.filter(comes).select(self._columns.names), rows.filter(pc.invert(comes)).select(self._key)

    def _operation(self, staged: dict[str, Any], at: Any) -> Any:
        """Make the operation that brings what was staged into the table as it is."""
        from lance.fragment import FragmentMetadata

        operations = self._table.lance.LanceOperation
        made = [FragmentMetadata.from_json(json.dumps(f)) for f in staged["fragments"]]
        files = [file.path for f in made for file in f.files]
        for file in (f for f in (*files, *staged["gone"]) if f not in self._verified):
            self._exists(file)
        if not self._key:
            return operations.Append(made)
        keys = [self._table.read(file, self._key) for file in (*files, *staged["gone"])]
        changed, removed = self._deleted(at, self._pa.concat_tables(keys))
        return operations.Update(removed_fragment_ids=removed, updated_fragments=changed, new_fragments=made)

    def _exists(self, file: str) -> None:
        try:
            self._table.read(file, (self._key or self._columns.names)[:1])
        except Exception as error:
            if "not found" not in str(error).lower():
                raise
            raise _host.failed(
                f"the file {file} of the table {self._table.path}, of an epoch that is yet to come, is gone",
                "clean up only what is older than pipelines stand still; begin anew, with another id and table",
                RiverbedExactlyOnceError,
            ) from None

    def _deleted(self, at: Any, keys: pyarrow.Table) -> tuple[list[Any], list[int]]:
        """Delete the rows of keys, in fragments that are not part of the table yet.

        Returns those that were changed, and the numbers of those that are left without rows.
        """
        pa, pc = self._pa, _arrow.need("pyarrow.compute", "the connector 'lance'")
        wanted = [keys[k] for k in self._key]
        hits: dict[int, list[int]] = collections.defaultdict(list)
        for batch in at.scanner(columns=self._key, with_row_address=True).to_batches():
            codes = _codes(pa, pc, [pa.chunked_array([batch[k]]) for k in self._key], wanted)
            for address in batch["_rowaddr"].filter(pc.is_valid(codes).combine_chunks()).to_pylist():
                hits[address >> 32].append(address & 0xFFFFFFFF)
        changed, removed = [], []
        for fragment, offsets in hits.items():
            left = at.get_fragment(fragment).delete_rows(offsets)
            if left is None:
                removed.append(fragment)
            else:
                changed.append(left)
        return changed, removed

    def _show(self, staged: dict[str, Any]) -> None:
        """Bring rows in at least once."""
        for _ in range(_TURNS):
            with self._table.errors("written"):
                at = self._table.latest()
                try:
                    self._table.commit(at, self._operation(staged, at), {})
                    return
                except Exception as error:
                    if not self._table.is_conflict(error):
                        raise
        raise _host.failed(f"the table {self._table.path} is changed by others all the time", kind=_host.TransientError)

    def begin(self, first: str) -> dict[str, Any]:
        assert self._ledger is not None
        return {"marker": self._ledger.begin(first)}

    def commit(self, epoch: int, marker: str, previous: str, committable: str | None) -> None:
        assert self._ledger is not None
        staged = json.loads(base64.b64decode(committable or "e30="))
        with self._table.errors("written"):
            self._ledger.commit(marker, previous, lambda at: self._operation(staged, at))
        self._verified.clear()

    def cancel(self) -> None:
        """Nothing of Lance can be cancelled; a commit has its own limit."""

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()


def _codes(pa: Any, pc: Any, columns: list[Any], of: list[Any]) -> Any:
    """Give rows numbers by the values of columns: equal rows, of NULLs too, have equal numbers.

    A row that is equal to none of `of` has none.
    """
    own = other = None
    for column, values in zip(columns, of, strict=True):
        different = values.unique()
        a, b = pc.index_in(column, value_set=different), pc.index_in(values, value_set=different)
        a, b = pc.cast(a, pa.int64()), pc.cast(b, pa.int64())
        if own is not None:
            n = len(different)
            a, b = pc.add(pc.multiply(own, n), a), pc.add(pc.multiply(other, n), b)
            different = b.unique()
            a, b = pc.index_in(a, value_set=different, skip_nulls=True), pc.index_in(b, value_set=different)
            a, b = pc.cast(a, pa.int64()), pc.cast(b, pa.int64())
        own, other = a, b
    return own
