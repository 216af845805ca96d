"""How statements of a peer's dialect are put to Riverbed. None: the record is no question to an engine of SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Hook = Callable[[str], str | None]


def datafusion(runner: Any) -> Hook:
    """External tables become reads of their files, types and functions get their names here; as for DuckDB."""
    hook: Hook = runner.rewrite_duckdb
    return hook


def risingwave(runner: Any) -> Hook:
    """Materialized views stay what they are; clauses of sources and of storage go."""

    def hook(sql: str) -> str | None:
        if runner.rewrite_duckdb(sql) is None:
            return None
        s = re.sub(
            r"\bcreate\s+materialized\s+view\s+(if\s+not\s+exists\s+)?", "CREATE MATERIALIZED VIEW ", sql, flags=re.I
        )
        s = re.sub(r"\bemit\s+on\s+window\s+close\b", "", s, flags=re.I)
        if re.match(r"\s*create\s+table", s, re.I):
            s = re.sub(r",?\s*watermark\s+for\s+\w+\s+as\s+[^,)]+(?:\([^)]*\))?(?=[,)\n])", "", s, flags=re.I)
            s = re.sub(r"\)\s*append\s+only", ")", s, flags=re.I)
            s = re.sub(r"\)\s*on\s+conflict[^;]*", ")", s, flags=re.I)
            s = re.sub(r"\bwith\s*\([^)]*\)\s*;?\s*$", "", s, flags=re.I)
        s = re.sub(r"\bpublic\.", "", s)
        return re.sub(r"\bjsonb\b", "json", s)

    return hook
