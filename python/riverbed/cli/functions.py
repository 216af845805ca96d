"""`riverbed functions`."""

from __future__ import annotations

import argparse
import sys

from riverbed.cli import common

SUMMARY = "List the SQL functions, or those whose name contains a word."
EXAMPLES = ("riverbed functions", "riverbed functions date", "riverbed functions --json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("word", nargs="?", default="", help="part of a function's name")
    common.add_session(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    with common.session(arguments) as session:
        found = [f for f in session.functions() if arguments.word.lower() in f["name"]]
    for function in found:
        if arguments.json:
            print(common.line(function))
        else:
            print(f"{function['name']:24} {function['kind']:10} {function['summary']}")
    if not found:
        print(f"no function's name contains {arguments.word!r}", file=sys.stderr)
    return 0 if found else 1
