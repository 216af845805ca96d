"""`riverbed run`."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time

from riverbed import Pipeline, PipelineHandle, Query
from riverbed.cli import common
from riverbed.cli.status import Status
from riverbed.errors import RiverbedError

SUMMARY = "Run a file of statements; every INSERT INTO a sink over a live source becomes a pipeline that goes on."
EXAMPLES = (
    "riverbed run pipeline.sql",
    "riverbed run pipeline.sql --until latest --json",
    "riverbed run pipeline.sql --checkpoint-dir s3://bucket/checkpoints --strict",
    "riverbed run pipeline.sql --checkpoint-dir s3://bucket/fork --from-savepoint s3://bucket/saved",
)


# Statements that make something new, or add rows: a pipeline before them starts when all of them have been read.
_MAKES = re.compile(r"(?is)(\s|--[^\n]*\n|/\*.*?\*/)*(CREATE|INSERT)\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("file", help="a file of SQL statements, separated by semicolons; - for standard input")
    parser.add_argument("--until", choices=["latest"], help="end where the sources end now")
    parser.add_argument("--drain", action="store_true", help="on Ctrl-C or SIGTERM close all windows and write them")
    parser.add_argument(
        "--checkpoint-dir",
        metavar="URL",
        help="a directory or s3:// URL: pipelines go on from their checkpoints there when they are started again",
    )
    parser.add_argument(
        "--from-savepoint",
        metavar="URL",
        help="pipelines without checkpoints begin from this savepoint, or that of their id below it; it stays as it is",
    )
    parser.add_argument(
        "--changed-query",
        choices=["refuse", "reuse", "rebuild"],
        help="what becomes of checkpoints of another query: go on with the state of the operators that are the same,"
        " or build it anew from the history of the sources",
    )
    parser.add_argument(
        "--accept-duplicates",
        action="store_true",
        help="go on with a sink whose marker the checkpoints do not know: rows may be lost or doubled",
    )
    parser.add_argument("--strict", action="store_true", help="refuse pipelines that cannot be exactly once")
    parser.add_argument("--quiet", action="store_true", help="tell nothing on standard error but errors")
    common.add_session(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    text = sys.stdin.read() if arguments.file == "-" else common.read(arguments.file)
    if arguments.checkpoint_dir:
        arguments.set.append(f"checkpoint_url={arguments.checkpoint_dir}")
    if arguments.from_savepoint:
        arguments.set.append(f"from_savepoint={arguments.from_savepoint}")
    if arguments.changed_query:
        arguments.set.append(f"changed_query={arguments.changed_query}")
    if arguments.accept_duplicates:
        arguments.set.append("accept_duplicates=true")
    with common.session(arguments) as session:
        pipelines = _Pipelines(arguments)
        at = 0
        try:
            for statement in session.statements(text):
                at = text.index(statement, at)
                if not _MAKES.match(statement):  # it may change how those before it run
                    pipelines.start()
                # What stands before is blanked, so that an error names the line of the file.
                query = session.sql(re.sub(r"[^\n]", " ", text[:at]) + statement)
                if query.is_pipeline:
                    pipelines.add(query, line=text.count("\n", 0, at) + 1)
                elif query.is_live:
                    with query.subscribe(until=arguments.until) as changes:
                        for batch in changes:
                            for row in batch:
                                print(common.line(row), flush=True)
                elif query.columns:
                    if arguments.json:
                        for row in query.to_pylist():
                            print(common.line(row))
                    else:
                        query.show()
                at += len(statement)
            pipelines.start()
            pipelines.follow()
            pipelines.wait()
        except KeyboardInterrupt:
            pipelines.interrupted()
            pipelines.stop(drain=arguments.drain)
            raise
        except RiverbedError as error:
            with contextlib.suppress(RiverbedError):  # what failed first is told
                pipelines.stop(drain=False)
            raise error
        pipelines.report()
    return 0


class _Pipelines:
    """The pipelines of a script, from their start to the line that tells how each ended."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._status = Status(sys.stderr, quiet=arguments.quiet)
        self._running: list[PipelineHandle] = []
        self._held: list[tuple[Pipeline, int]] = []
        self._behind: list[tuple[Pipeline, int]] = []  # over __late and __bad: they follow the others
        self._followers: list[PipelineHandle] = []
        self._starting = 0  # the line of the one that has been asked to start and does not run yet

    def add(self, query: Query, line: int) -> None:
        """Hold a pipeline until those behind it are known, so that none runs when another is refused."""
        pipeline = query.pipeline(exactly_once=self._arguments.strict)
        self._starting = line
        pipeline.check()
        self._starting = 0
        (self._behind if query.follows else self._held).append((pipeline, line))

    def start(self) -> None:
        """Start those that are held."""
        while self._held:
            self._start(*self._held.pop(0), self._running)

    def follow(self) -> None:
        """Start those that follow."""
        for pipeline, line in self._behind:
            self._start(pipeline, line, self._followers)

    def _start(self, pipeline: Pipeline, line: int, among: list[PipelineHandle]) -> None:
        self._starting = line
        among.append(pipeline.run(blocking=False, until=self._arguments.until))
        self._starting = 0
        self._status.started(among[-1].metrics())

    def wait(self) -> None:
        """Wait until all have ended; raise what one fails with."""
        waiting, told = self._running + self._followers, time.monotonic()
        while waiting:
            waiting = [handle for handle in waiting if not handle.wait(timeout=0.2)]
            if waiting and time.monotonic() - told >= 1:
                told = time.monotonic()
                if self._arguments.json:
                    self._report(waiting)
                else:
                    self._status.show([handle.metrics() for handle in waiting])

    def interrupted(self) -> None:
        """Tell what a signal came upon, where no line will tell how it ended."""
        self._status.clear()
        if self._starting:
            print(f"interrupted: the pipeline of line {self._starting} had not started", file=sys.stderr)

    def stop(self, *, drain: bool) -> None:
        """Stop all and tell how they ended; raise what the first failed with that fails."""
        failed: list[RiverbedError] = []
        # Those that follow end last, and without checkpoints take what is left: nothing gives it to them later.
        for handle in self._running + self._followers:
            left = handle in self._followers and not handle.metrics()["epoch"]
            try:
                handle.stop(drain=drain or left)
            except RiverbedError as error:
                failed.append(error)
        self.report()
        if failed:
            raise failed[0]

    def report(self) -> None:
        """Tell how those went that have ended."""
        self._status.clear()
        self._report(self._running + self._followers)

    def _report(self, handles: list[PipelineHandle]) -> None:
        for handle in handles:
            metrics = handle.metrics()
            if self._arguments.json:
                print(common.line(metrics), flush=True)
            elif not self._arguments.quiet or metrics.get("checkpoint_warning"):
                print(
                    f"{metrics['state']}: {metrics['pipeline']}, "
                    f"{metrics['rows_in']} rows in, {metrics['rows_out']} out, "
                    f"{metrics['late_rows']} late, {metrics['bad_rows']} bad, {metrics['steps']} steps"
                    + (f", epoch {metrics['epoch']}" if metrics["epoch"] else "")
                    + (f"\nwaiting for: {metrics['waiting_for']}" if metrics.get("waiting_for") else "")
                    + (f"\nwarning: {metrics['checkpoint_warning']}" if metrics.get("checkpoint_warning") else ""),
                    file=sys.stderr,
                )
