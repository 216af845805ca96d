"""`riverbed replay`."""

from __future__ import annotations

import argparse
import json
import re
import sys

from riverbed.cli import common
from riverbed.errors import RiverbedUsageError

SUMMARY = "Feed bad rows of a pipeline, repaired or as they are, back to where their stream reads: each row once."
EXAMPLES = (
    "riverbed replay --pipeline-id minutes --checkpoint-dir s3://bucket/checkpoints --export bad.jsonl",
    "riverbed replay trades.sql --pipeline-id minutes --checkpoint-dir s3://bucket/checkpoints --repaired bad.jsonl",
    "riverbed replay trades.sql --pipeline-id minutes --checkpoint-dir s3://bucket/checkpoints --into repaired_trades",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("file", nargs="?", help="the script of the pipeline: its CREATE statements say where rows go")
    common.add_checkpoints(parser)
    parser.add_argument(
        "--export", metavar="FILE", help="write the bad rows to a file of JSON lines, to repair them; feed nothing back"
    )
    parser.add_argument(
        "--repaired", metavar="FILE", help="JSON lines or Parquet with the columns number and raw: feed back these rows"
    )
    parser.add_argument("--source", default="", metavar="STREAM", help="only rows of this stream")
    parser.add_argument(
        "--into", default="", metavar="SINK", help="a sink of the script for the column raw, instead of the stream"
    )
    common.add_session(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    place = common.place(arguments)
    arguments.set += [f"checkpoint_url={place['url']}", "checkpoint_interval_ms=100"]
    with common.session(arguments) as session:
        if arguments.export:
            rows = (
                "SELECT number, source, split, position, error, time, decode(key) AS key, decode(raw) AS raw "
                f"FROM state({_quoted(place['pipeline'])}, '__bad') WHERE raw IS NOT NULL"
                + (f" AND lower(source) = lower({_quoted(arguments.source)})" if arguments.source else "")
                + " ORDER BY number"
            )
            session.sql(f"COPY ({rows}) TO {_quoted(arguments.export)}")
            print(f"written to {arguments.export}", file=sys.stderr)
            return 0
        if not arguments.file:
            raise RiverbedUsageError("name the script of the pipeline, which says where the rows go back to")
        text = common.read(arguments.file)
        for statement in session.statements(text):
            if re.match(r"(?is)\s*(--[^\n]*\n\s*)*(CREATE|SET)\b", statement):
                session.sql(statement)
        found = session.replay(
            place["pipeline"], repaired=arguments.repaired, source=arguments.source, into=arguments.into
        )
    if arguments.json:
        print(json.dumps(found))
    else:
        print(
            f"{found['replayed']} rows went back, {found['already']} had gone before"
            + (f", {found['no_bytes']} have no bytes (an expression failed on them)" if found["no_bytes"] else "")
        )
    return 0


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
