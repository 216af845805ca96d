"""Batches of rows, as results and subscriptions hand them out."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from riverbed import _arrow, _native, _values

if TYPE_CHECKING:
    import datetime

    import polars
    import pyarrow

__all__ = ["Batch"]


class Shape:
    """What the batches of a subscription have in common: to hand over a schema costs more than to hand over rows."""

    def __init__(self) -> None:
        self.schema: pyarrow.Schema | None = None  # without metadata, once it was asked for


class Batch:
    """Rows of a result, or the changes of one step.

    A batch exports itself through the Arrow PyCapsule protocol, without a copy: `pyarrow.record_batch(batch)`,
    `polars.DataFrame(batch)` and DuckDB take it as it is.

    Attributes
    ----------
    num_rows, num_columns : int
        The size. A batch of a subscription may be empty and carry a watermark alone.
    step : int or None
        The step whose changes these are.
    watermark : datetime.datetime or None
        No earlier event time will come. None where nothing is known yet, or the input has ended.
    watermark_us : int or None
        The same in microseconds since 1970, UTC, as it travels; the largest number at the end of the input.
    barrier : int or None
        The epoch that ends with this batch.

    Examples
    --------
    >>> import riverbed as rb
    >>> [batch.to_pylist() for batch in rb.sql("SELECT 1 AS one").batches()]
    [[{'one': 1}]]
    """

    def __init__(
        self,
        handle: _native.Handle,
        info: tuple[int, int, int, int, int] | None = None,
        shape: Shape | None = None,
    ) -> None:
        self._handle = handle
        self._shape = shape
        self.num_rows, self.num_columns, step, watermark, barrier = info or _native.describe(handle)
        self.step: int | None = _known(step)
        self.watermark_us: int | None = _known(watermark)
        self.barrier: int | None = _known(barrier)

    @property
    def watermark(self) -> datetime.datetime | None:
        """The watermark as a moment in UTC."""
        return None if self.watermark_us is None else _values.from_micros(self.watermark_us)

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step {self.step}, watermark {self.watermark}"
        return f"<riverbed.Batch: {self.num_rows} rows, {self.num_columns} columns{step}>"

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Export as a pair of capsules; step, watermark and barrier are in the schema's metadata."""
        array, schema = _arrow.alloc(_arrow.CArray), _arrow.alloc(_arrow.CSchema)
        capsules = _arrow.schema_capsule(schema), _arrow.array_capsule(array)
        _native.call("rb_batch_export", self._handle.value, array, schema)
        return capsules

    def __arrow_c_schema__(self) -> object:
        """Export the schema alone."""
        return self.__arrow_c_array__()[0]

    def to_arrow(self) -> pyarrow.RecordBatch:
        """Return a pyarrow RecordBatch over the same memory."""
        pa = _arrow.need("pyarrow", "to_arrow()")
        batch: pyarrow.RecordBatch
        if self._shape is None or self._shape.schema is None:
            batch = pa.record_batch(self)
            if self._shape is not None:
                self._shape.schema = batch.schema.remove_metadata()
            return batch
        array = _arrow.CArray()
        _native.call("rb_batch_export", self._handle.value, ctypes.addressof(array), None)
        schema = self._shape.schema.with_metadata(self._edge())
        batch = pa.RecordBatch._import_from_c(ctypes.addressof(array), schema)
        return batch

    def _edge(self) -> dict[str, str]:
        """Return what travels beside the rows as the library writes it into the metadata of a schema."""
        watermark = _native.ABSENT if self.watermark_us is None else self.watermark_us
        edge = {"riverbed.step": str(self.step), "riverbed.watermark": str(watermark)}
        return edge if self.barrier is None else edge | {"riverbed.barrier": str(self.barrier)}

    def to_polars(self) -> polars.DataFrame:
        """Return a Polars frame over the same memory."""
        pl = _arrow.need("polars", "to_polars()")
        _arrow.need("pyarrow", "to_polars()")
        frame: polars.DataFrame = pl.from_arrow(self.to_arrow())
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of Python values; needs no other package.

        Of columns with equal names (case does not count) the later ones are called `x_1`, `x_2`, …; iteration gives
        the same rows.

        Examples
        --------
        >>> import riverbed as rb
        >>> next(rb.sql("SELECT 'a' AS k, 2 AS v").batches()).to_pylist()
        [{'k': 'a', 'v': 2}]
        """
        return _arrow.read_batch(self._handle)

    def buffer_addresses(self) -> list[list[int]]:
        """Return where the buffers of each column lie, for tests of zero-copy."""
        array, schema = _arrow.CArray(), _arrow.CSchema()
        _native.call("rb_batch_export", self._handle.value, ctypes.addressof(array), ctypes.addressof(schema))
        try:
            children = [array.children[i].contents for i in range(array.n_children)]
            return [[c.buffers[i] or 0 for i in range(c.n_buffers)] for c in children]
        finally:
            _arrow.release(array)
            _arrow.release(schema)


def _known(value: int) -> int | None:
    return None if value == _native.ABSENT else value
