"""The command line: `riverbed COMMAND`. One file a command: summary, example, flags, `run(args) -> int`."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import NoReturn

from riverbed.cli import explain, functions, inspect, replay, run, savepoint, sql
from riverbed.errors import RiverbedError

__all__ = ["command", "main"]

COMMANDS = (sql, run, explain, functions, inspect, savepoint, replay)


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


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does: pipelines stop, and their files are finished."""


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors go to stderr as the sentence that Python would raise."""
    try:
        with _terminable():
            return _main(argv)
    except RiverbedError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Terminated:
        return 143
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        return 141


def _main(argv: Sequence[str] | None) -> int:
    top = parser()
    arguments = top.parse_args(argv)
    if arguments.version:
        import riverbed

        print(f"riverbed {riverbed.version()}")
        return 0
    if arguments.command is None:
        top.print_help()
        return 2
    return int(arguments.run(arguments))


def command() -> NoReturn:
    """Be the process of a command: `riverbed`, `python -m riverbed.cli`."""
    code = main()
    # What is left is the end of the interpreter, which has nobody to tell of a second Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)
