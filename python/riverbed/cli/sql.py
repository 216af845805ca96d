"""`riverbed sql`."""

from __future__ import annotations

import argparse

from riverbed.cli import common

SUMMARY = "Run SQL and print the rows; of a live query its changes, as they come."
EXAMPLES = (
    "riverbed sql \"SELECT symbol, avg(price) FROM 'trades/*.parquet' GROUP BY symbol\"",
    "riverbed sql --json \"SELECT * FROM 'events.jsonl' LIMIT 3\"",
    "riverbed sql @report.sql",
    "cat report.sql | riverbed sql -",
    "riverbed sql --checkpoint-dir s3://bucket/checkpoints \"SELECT * FROM state('minutes')\"",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("query", help="SQL, @FILE, or - for standard input")
    parser.add_argument("--limit", type=int, default=40, help="rows to print (40); --json prints all")
    parser.add_argument("--until", choices=["latest"], help="end a live query where its sources end now")
    parser.add_argument(
        "--checkpoint-dir",
        metavar="URL",
        help="a directory or s3:// URL: where state('pipeline', …) reads, and an INSERT INTO over a live source goes on"
        " from; the same as --set checkpoint_url=URL",
    )
    common.add_session(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.checkpoint_dir:
        arguments.set.append(f"checkpoint_url={arguments.checkpoint_dir}")
    with common.session(arguments) as session:
        query = session.sql(common.text(arguments.query))
        if query.is_pipeline:
            query.pipeline().run(until=arguments.until)
        elif query.is_live:
            with query.subscribe(until=arguments.until) as changes:
                for batch in changes:
                    for row in batch:
                        print(common.line(row), flush=True)
        elif arguments.json:
            for batch in query.batches():
                for row in batch:
                    print(common.line(row))
        else:
            query.show(arguments.limit)
    return 0
