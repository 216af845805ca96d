"""`riverbed run`."""

from __future__ import annotations

import argparse
import re
import sys
import time

from riverbed import PipelineHandle, Query
from riverbed.cli import common
from riverbed.cli.status import Status

SUMMARY = "Run a file of statements; every INSERT INTO a sink over a live source becomes a pipeline that goes on."
EXAMPLES = (
    "riverbed run pipeline.sql",
    "riverbed run pipeline.sql --until latest --json",
    "riverbed run pipeline.sql --checkpoint-dir s3://bucket/checkpoints --strict",
    "riverbed run pipeline.sql --checkpoint-dir s3://bucket/fork --from-savepoint s3://bucket/saved",
)


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
        running: list[PipelineHandle] = []
        behind: list[Query] = []  # pipelines over __late and __bad: they follow the others
        followed = 0  # how many of those that run are none
        status = Status(sys.stderr, quiet=arguments.quiet)

        def start(query: Query) -> None:
            handle = query.pipeline(exactly_once=arguments.strict).run(blocking=False, until=arguments.until)
            running.append(handle)
            status.started(handle.metrics())

        at = 0
        try:
            for statement in session.statements(text):
                at = text.index(statement, at)
                # What stands before is blanked, so that an error names the line of the file.
                query = session.sql(re.sub(r"[^\n]", " ", text[:at]) + statement)
                at += len(statement)
                if query.is_pipeline and query.follows:
                    behind.append(query)
                elif query.is_pipeline:
                    start(query)
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
            followed = len(running)
            for query in behind:
                start(query)
            _wait(running, arguments, status)
        except KeyboardInterrupt:
            status.clear()
            # Those that follow end last, and without checkpoints take what is left: nothing gives it to them later.
            for number, handle in enumerate(running):
                last = bool(behind) and number >= followed
                handle.stop(drain=arguments.drain or (last and not handle.metrics()["epoch"]))
            _report(running, arguments)
            raise
        status.clear()
        _report(running, arguments)
    return 0


def _wait(running: list[PipelineHandle], arguments: argparse.Namespace, status: Status) -> None:
    waiting, told = list(running), time.monotonic()
    while waiting:
        waiting = [handle for handle in waiting if not handle.wait(timeout=0.2)]
        if waiting and time.monotonic() - told >= 1:
            told = time.monotonic()
            if arguments.json:
                _report(waiting, arguments)
            else:
                status.show([handle.metrics() for handle in waiting])


def _report(handles: list[PipelineHandle], arguments: argparse.Namespace) -> None:
    for handle in handles:
        metrics = handle.metrics()
        if arguments.json:
            print(common.line(metrics), flush=True)
        elif not arguments.quiet or metrics.get("checkpoint_warning"):
            print(
                f"{metrics['state']}: {metrics['rows_in']} rows in, {metrics['rows_out']} out, "
                f"{metrics['late_rows']} late, {metrics['bad_rows']} bad, {metrics['steps']} steps"
                + (f", epoch {metrics['epoch']}" if metrics["epoch"] else "")
                + (f"\nwaiting for: {metrics['waiting_for']}" if metrics.get("waiting_for") else "")
                + (f"\nwarning: {metrics['checkpoint_warning']}" if metrics.get("checkpoint_warning") else ""),
                file=sys.stderr,
            )
