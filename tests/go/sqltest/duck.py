"""Answers requests, one JSON object a line, with DuckDB: {"setup": [...], "query": ...} gives types and rows as text."""

import json
import sys

import duckdb


def answer(db, ask):
    used = bool(ask.get("setup"))
    try:
        if used:
            db.execute("DROP SCHEMA IF EXISTS s CASCADE; CREATE SCHEMA s; SET schema = 's'; RESET default_null_order; RESET default_order")
            for statement in ask["setup"]:
                db.execute(statement)
        rel = db.sql(ask["query"])
        if rel is None:
            return {"types": [], "rows": []}
        types = [str(t) for t in rel.types]
        names = ", ".join(f"c{i}" for i in range(len(types)))
        casts = ", ".join(f"CAST(c{i} AS VARCHAR)" for i in range(len(types)))
        rows = db.execute(f"SELECT {casts} FROM ({ask['query']}\n) r({names})").fetchall()
        return {"types": types, "rows": rows}
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"}
    finally:
        if used:
            db.execute("SET schema = 'main'")


def main():
    db = duckdb.connect(":memory:")
    db.execute("SET threads = 1; SET enable_progress_bar = false; SET TimeZone = 'UTC'")
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(db, json.loads(line))), flush=True)


main()
