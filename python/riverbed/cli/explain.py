"""`riverbed explain`."""

from __future__ import annotations

import argparse

from riverbed.cli import common

SUMMARY = "Print how a query would run, in which mode and why."
EXAMPLES = (
    "riverbed explain \"SELECT symbol, count(*) FROM 'trades/*.parquet' GROUP BY symbol\"",
    "riverbed explain --mode incremental @query.sql",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "query", help="SQL, @FILE, or - for standard input; of several statements the last is explained"
    )
    parser.add_argument(
        "--mode", choices=["batch", "incremental"], help="explain that mode, not the one that would run"
    )
    common.add_session(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    with common.session(arguments) as session:
        plan = session.sql(common.text(arguments.query)).explain(mode=arguments.mode)
    print(common.line({"plan": plan.splitlines()}) if arguments.json else plan.rstrip("\n"))
    return 0
