"""The command line: `riverbed COMMAND`. One file a command: summary, example, flags, `run(args) -> int`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from riverbed.cli import explain, functions, run, sql
from riverbed.errors import RiverbedError

__all__ = ["main"]

COMMANDS = (sql, run, explain, functions)


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="riverbed",
        description="One SQL query, run once over files or incrementally over live streams, with equal results.",
        epilog="riverbed COMMAND --help shows examples.",
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    commands = top.add_subparsers(metavar="COMMAND", dest="command")
    for command in COMMANDS:
        sub = commands.add_parser(
            command.__name__.rpartition(".")[2],
            help=command.SUMMARY,
            description=command.SUMMARY,
            epilog="examples:\n" + "".join(f"  {line}\n" for line in command.EXAMPLES),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors go to stderr as the sentence that Python would raise."""
    top = parser()
    arguments = top.parse_args(argv)
    if arguments.version:
        import riverbed

        print(f"riverbed {riverbed.version()}")
        return 0
    if arguments.command is None:
        top.print_help()
        return 2
    try:
        return int(arguments.run(arguments))
    except RiverbedError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        return 141
