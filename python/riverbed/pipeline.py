"""Pipelines: queries that run incrementally into a sink."""

from __future__ import annotations

import json
from types import TracebackType
from typing import TYPE_CHECKING, Any

from riverbed import _native

if TYPE_CHECKING:
    from riverbed.query import Query

__all__ = ["Pipeline", "PipelineHandle"]


class Pipeline:
    """A query and its sink, as `Query.sink` returns it."""

    def __init__(self, handle: _native.Handle, query: Query) -> None:
        self._handle = handle
        self._query = query  # it holds what the run reads

    def run(self, *, blocking: bool = True, until: str | None = None) -> PipelineHandle:
        """Start.

        Parameters
        ----------
        blocking : bool
            Wait for the end: of bounded input, by `stop()` in another thread, or by Ctrl-C. Otherwise return at once.
        until : {"latest"}, optional
            End where the sources end now; without it a live pipeline runs until it is stopped.
        """
        _native.wait(self._handle, _native.call, "rb_pipeline_start", self._handle.value, *_native.chars(until or ""))
        handle = PipelineHandle(self._handle, self._query)
        if blocking:
            try:
                handle.wait()
            except KeyboardInterrupt:
                handle.stop()
                raise
        return handle

    def check(self) -> None:
        """Refuse what `run()` would refuse of the checkpoints to go on from, or the savepoint to begin from.

        Nothing starts or changes, so of several pipelines all can be asked before the first runs.
        """
        self._query._wait(self._query._handle, _native.call, "rb_pipeline_check", self._handle.value)

    def stop(self, *, drain: bool = False) -> None:
        """Stop; see `PipelineHandle.stop`."""
        PipelineHandle(self._handle, self._query).stop(drain=drain)


class PipelineHandle:
    """A pipeline that was started."""

    def __init__(self, handle: _native.Handle, query: Query) -> None:
        self._handle = handle
        self._query = query  # it holds what the run reads

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether it has ended. Raises what the pipeline failed with."""
        left = None if timeout is None else int(timeout * 1000)
        with self._query._callbacks.causes():
            while True:
                # Short waits, so that Ctrl-C is seen.
                turn = 50 if left is None else min(left, 50)
                if _native.wait_pipeline(self._handle, turn):
                    return True
                if left is not None:
                    left -= turn
                    if left <= 0:
                        return False

    def stop(self, *, drain: bool = False) -> None:
        """Finish the running step and stop.

        Parameters
        ----------
        drain : bool
            End the input instead: all windows close and are written.
        """
        with self._query._callbacks.causes():
            _native.wait(self._handle, _native.call, "rb_pipeline_stop", self._handle.value, int(drain))

    def metrics(self) -> dict[str, Any]:
        """Return what the run tells about itself. Counts are since its start; other names end in their unit.

        Returns
        -------
        dict
            - `pipeline`: the name of the run, as `__late` and `__bad` have it.
            - `state`: `"starting"`, `"running"`, `"stopping"`, `"stopped"` or `"failed"`; `error`: what it failed with,
              and only then.
            - `steps`: how many it has made; `step_us`: how long the last one took.
            - `rows_in`, `rows_out`: rows that came from the sources, and changes that went out.
            - `late_rows`, `bad_rows`: rows that were left out, because they came behind the watermark, and because an
              expression failed on them under `SET on_error = 'bad'`.
            - `bad_retractions`: retractions of rows that were never there.
            - `unknown_fields`: fields of messages that the stream has no column for.
            - `queue_rows`: rows that were read and wait for a step.
            - `state_rows`, `state_bytes`: what the operators keep now; `state_touched`: rows of it that were looked up,
              made or dropped so far.
            - `watermark_us`: the watermark of what went out, in microseconds since 1970, UTC; the least 64-bit integer
              before there is one, the largest when the input has ended.
            - `epoch`: the newest durable one, `checkpoint_ms`: how long it took from its barrier to the sink's commit,
              `checkpoint_bytes`: what it wrote, `checkpoint_pause_us`: the longest that the steps stood still for it at
              a time; 0 without a `checkpoint_url`. `checkpoint_warning`: what failed behind without ending the run, if
              anything.
            - `outages`: how often a service did not answer and was waited for; `waiting_for`: what does not at present.
            - `lag_ms`: how far the watermark was behind the clock at the last step; 0 before there is one.
            - `sources`: by the name of each source `Rows`, `Bytes`, `Bad` (records that could not be decoded), `Late`,
              `Splits`, and `Positions`, which has for each split where its reader stands.
        """
        metrics: dict[str, Any] = json.loads(_native.call_text("rb_pipeline_metrics", self._handle.value))
        return metrics

    def __enter__(self) -> PipelineHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
