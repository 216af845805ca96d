"""What one record of a peer's test proves about the engine.

The peers speak other dialects, so a record counts for itself when our answer is the expected one, and through DuckDB
when DuckDB contradicts the record and answers as we do. Where both refuse, nothing is proved: such records are counted
apart.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

Row = list[str]


class Outcome(enum.StrEnum):
    PASSED = "passed"
    AS_DUCKDB = "as DuckDB"
    BOTH_REFUSE = "both refuse"
    WRONG = "wrong answer"
    ORDER = "other order"
    ERROR = "error"
    NO_ERROR = "no error where one is expected"
    TIMEOUT = "timeout"
    CRASH = "crash"
    EXCLUDED = "excluded"
    SKIPPED = "skipped"


GOOD = {Outcome.PASSED, Outcome.AS_DUCKDB}
APART = {Outcome.BOTH_REFUSE, Outcome.EXCLUDED, Outcome.SKIPPED}
TIMED_OUT = "TIMEOUT"
TOO_LONG = "the file took too long"


@dataclass(frozen=True)
class Answer:
    """What an engine said: rows as text, or an error; and whether that is what the record expects."""

    rows: list[Row] | None = None
    error: str | None = None
    right: bool = False


def refuses(answer: Answer) -> bool:
    """Whether the engine refused in words: a timeout and an internal error are no refusals."""
    error = answer.error
    return error is not None and not error.startswith(TIMED_OUT) and "internal" not in error.split(":")[0].lower()


def equal_rows(a: list[Row], b: list[Row], same: Callable[[Row, Row], bool]) -> bool:
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


def equal_sets(a: list[Row], b: list[Row], same: Callable[[Row, Row], bool]) -> bool:
    """Whether both hold the same rows equally often, in any order."""
    if len(a) != len(b):
        return False
    if sorted(a) == sorted(b):
        return True
    if len(a) > 600:  # the pairing below is quadratic
        return False
    rest = list(b)
    for row in a:
        at = next((i for i, other in enumerate(rest) if same(row, other)), None)
        if at is None:
            return False
        del rest[at]
    return True


def judge(
    ours: Answer,
    duck: Answer | None,
    *,
    wants_error: bool,
    ordered: bool,
    same: Callable[[Row, Row], bool],
) -> Outcome:
    """Say what a record proves.

    Parameters
    ----------
    ours, duck : Answer
        What the engine and DuckDB said; None where DuckDB cannot be asked.
    wants_error : bool
        The record expects an error.
    ordered : bool
        The record says the order of its rows.
    same : callable
        Whether two rows are equal as the suite compares them.
    """
    if ours.right and (ours.error is None or refuses(ours)):
        return Outcome.PASSED
    contradicted = duck is not None and not duck.right
    if duck is not None and contradicted:
        if wants_error and ours.error is None and duck.error is None:
            return Outcome.AS_DUCKDB
        if not wants_error and refuses(ours) and refuses(duck):
            return Outcome.BOTH_REFUSE
        if not wants_error and ours.rows is not None and duck.rows is not None:
            equal = equal_rows if ordered else equal_sets
            if equal(ours.rows, duck.rows, same):
                return Outcome.AS_DUCKDB
    return failure(ours, duck, wants_error=wants_error, same=same)


def failure(ours: Answer, duck: Answer | None, *, wants_error: bool, same: Callable[[Row, Row], bool]) -> Outcome:
    if ours.error is not None:
        return Outcome.TIMEOUT if ours.error.startswith(TIMED_OUT) else Outcome.ERROR
    if wants_error:
        return Outcome.NO_ERROR
    if duck is not None and ours.rows is not None and duck.rows is not None and equal_sets(ours.rows, duck.rows, same):
        return Outcome.ORDER
    return Outcome.WRONG
