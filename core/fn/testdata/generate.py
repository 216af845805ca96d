# ruff: noqa: E501
"""Write duckdb_nested.tsv: each function of lists, structs, maps and JSON over 100 tuples of arguments drawn at random, as DuckDB answers.

Run it as `.venv/bin/python core/fn/testdata/generate.py`; the same seed gives the same file. TestDuckDB reads it.
"""

import pathlib
import random

import duckdb

PER_FUNCTION = 100

INTS = ["NULL", "0", "1", "2", "3", "-1", "7", "100", "2147483647"]
TEXTS = ["NULL", "''", "'a'", "'b'", "'ab'", "'ä'", "'7'", "'B c'", "'日本'"]
DOUBLES = ["NULL", "0.0::DOUBLE", "1.5::DOUBLE", "-2.25::DOUBLE", "'nan'::DOUBLE", "'inf'::DOUBLE"]
BOOLS = ["NULL", "true", "false"]


class Draw:
    """Draws texts of expressions."""

    def __init__(self, seed: str) -> None:
        self.r = random.Random(seed)

    def of(self, *choices: str) -> str:
        return self.r.choice(choices)

    def items(self, pool: list[str], most: int = 5) -> str:
        return "[" + ", ".join(self.r.choice(pool) for _ in range(self.r.randint(0, most))) + "]"

    def ints(self) -> str:
        return self.of(
            *[self.items(INTS) + "::INTEGER[]"] * 6,
            self.items(INTS[:-1]) + "::BIGINT[]",
            self.items(INTS[:-2]) + "::TINYINT[]",
            "NULL::INTEGER[]",
        )

    def small(self) -> str:
        return self.of(*[self.items(["NULL", "0", "1", "2", "3", "-1", "7"]) + "::INTEGER[]"] * 8, "NULL::INTEGER[]")

    def texts(self) -> str:
        return self.of(*[self.items(TEXTS) + "::VARCHAR[]"] * 8, "NULL::VARCHAR[]")

    def doubles(self) -> str:
        return self.of(*[self.items(DOUBLES) + "::DOUBLE[]"] * 8, "NULL::DOUBLE[]")

    def lists(self) -> str:
        return self.of(
            *[self.items([self.items(INTS, 3) + "::INTEGER[]" for _ in range(3)] + ["NULL"], 4) + "::INTEGER[][]"] * 8,
            "NULL::INTEGER[][]",
        )

    def list(self) -> str:
        return self.r.choice([self.small, self.small, self.texts, self.doubles, self.lists])()

    def int(self) -> str:
        return self.r.choice(INTS)

    def text(self) -> str:
        return self.r.choice(TEXTS)

    def bool(self) -> str:
        return self.r.choice(BOOLS)

    def json(self, depth: int = 3) -> str:
        """Write a JSON value, without quotes around it."""
        kind = self.r.randint(0, 9 if depth else 5)
        if kind < 6:
            return self.of(
                "null", "true", "false", "1", "-2", "3.5", '""', '"a"', '"é"', '"x y"', "12345678901234567890", "1e3"
            )
        if kind < 8:
            return "[" + ", ".join(self.json(depth - 1) for _ in range(self.r.randint(0, 3))) + "]"
        keys = self.r.sample(["a", "b", "c", "x y", ""], self.r.randint(0, 3))
        return "{" + ", ".join(f'"{k}": {self.json(depth - 1)}' for k in keys) + "}"

    def doc(self) -> str:
        return "NULL::JSON" if self.r.random() < 0.05 else f"'{self.json()}'::JSON"

    def path(self) -> str:
        return self.of(
            "'$'",
            "'$.a'",
            "'$.b.a'",
            "'$[0]'",
            "'$[1].a'",
            "'$.a[0]'",
            "'a'",
            "'/a/b'",
            "'$[#-1]'",
            "'$.c'",
            "'$.a.b.c'",
        )


def lambda_int(d: Draw) -> str:
    return d.of("lambda x: x + 1", "lambda x: x * x", "lambda x, i: x + i", "lambda x: x IS NULL", "lambda x: coalesce(x, 0) % 3", "lambda x: x > 1 AND x < 7",
                "lambda x: {'v': x, 'w': x % 2}", "lambda x: [x, x]", "lambda x: CASE WHEN x > 2 THEN 'big' ELSE x::VARCHAR END", "lambda x: 12 // x", "lambda x: NULL",
                "lambda x: 5", "lambda x: list_transform([1, x], lambda y: y + x)", "lambda x, i: i", "lambda x: TRY(12 // x)", "lambda x: x::VARCHAR || 's'")  # fmt: skip


def lambda_test(d: Draw) -> str:
    return d.of("lambda x: x > 1", "lambda x: x IS NULL", "lambda x, i: i % 2 = 1", "lambda x, i: x > i", "lambda x: true", "lambda x: NULL", "lambda x: x",
                "lambda x: x IN (1, 2, NULL)", "lambda x: len(list_filter([1, 2, 3], lambda y: y > x)) > 1", "lambda x: 6 % x = 0")  # fmt: skip


def reduced(d: Draw) -> str:
    body = d.of("lambda a, x: a + x", "lambda a, x: coalesce(a, 0) + coalesce(x, 0)", "lambda a, x, i: a + x * i", "lambda a, x: greatest(a, x)", "lambda a, x: a - x",
                "lambda a, x: x", "lambda a, x: a", "lambda a, x: CASE WHEN x > a THEN x ELSE a END", "lambda a, x: NULL", "lambda a, x: a + x::BIGINT")  # fmt: skip
    return f"list_reduce({d.small()}, {body}" + d.of("", f", {d.int()}", ", 100", ", 0::BIGINT") + ")"


FUNCTIONS = {
    "list_transform": lambda d: d.of(f"list_transform({d.small()}, {lambda_int(d)})",
                                     f"list_transform({d.texts()}, {d.of('lambda x: upper(x)', 'lambda x: len(x)', 'lambda x, i: x || i', 'lambda x: x[1]', 'lambda x: [x]')})",
                                     f"list_transform({d.lists()}, {d.of('lambda x: len(x)', 'lambda x: x[1]', 'lambda x: list_transform(x, lambda y: y // 2)', 'lambda x: list_sum(x)')})"),
    "list_filter": lambda d: d.of(f"list_filter({d.small()}, {lambda_test(d)})",
                                  f"list_filter({d.texts()}, {d.of('lambda x: len(x) > 1', 'lambda x: x <> upper(x)', 'lambda x, i: i > 1')})",
                                  f"list_filter({d.lists()}, {d.of('lambda x: len(x) > 1', 'lambda x: list_contains(x, 1)')})"),
    "list_reduce": reduced,
    "comprehension": lambda d: f"[{d.of('x', 'x + 1', '[x]', 'x % 3')} FOR x IN {d.small()}{d.of('', ' IF x > 1', ' IF x IS NOT NULL')}]",
    "comprehension of two": lambda d: f"[{d.of('x + i', 'i', '[x, i]')} FOR x, i IN {d.small()}{d.of('', ' IF x > 1', ' IF i > 1', ' IF x > i')}]",
}  # fmt: skip

BLOBS = ["'abcde'::BLOB", "'\\x00\\xFFab'::BLOB", "NULL::BLOB", "''::BLOB"]
X, ODD, SEPARATORS = "'x'", ["'$[#]'", "'$[5]'", "'$.*'"], ["','", "''", "' - '", "NULL"]


def put(name: str):
    return lambda d: f"{name}({d.doc()}, {d.of(d.path(), d.path(), d.path(), *ODD)}, '{d.json(1)}'::JSON)"


def two(name: str, op: str = ""):
    def make(d: Draw) -> str:
        kind = d.r.choice([d.small, d.small, d.texts, d.doubles])
        a, b = kind(), kind()
        return f"{a} {op} {b}" if op and d.r.random() < 0.5 else f"{name}({a}, {b})"

    return make


def bound(d: Draw) -> str:
    return d.of("", "", "1", "2", "3", "-1", "-2", "0", "9", "-9", "NULL")


FUNCTIONS |= {
    "list_slice": lambda d: d.of(f"{d.of('[1, 2, 3, 4, 5]', '[1, 2]', '[NULL, 2, 3]')}[{bound(d)}:{bound(d)}]",
                                 f"{d.of('[1, 2, 3, 4, 5]', '[1, 2]', '[NULL, 2, 3]')}[{bound(d)}:{bound(d) or '-'}:{d.of('1', '2', '-1', '-2', '-7', '0', 'NULL')}]",
                                 f"list_slice({d.list()}, {bound(d) or '1'}, {bound(d) or '-1'})", f"'abcde'[{bound(d)}:{bound(d)}]"),
    "list_has_any": two("list_has_any", "&&"), "list_has_all": two("list_has_all", "@>"), "list_intersect": lambda d: f"len(list_intersect({d.small()}, {d.small()}))",
    "contained": lambda d: f"{d.small()} <@ {d.small()}",
    "array_pop_back": lambda d: f"array_pop_back({d.list()})", "array_pop_front": lambda d: f"array_pop_front({d.list()})",
    "array_prepend": lambda d: d.of(f"array_prepend({d.of('NULL', '0', '5', '7')}, {d.small()})", f"array_push_front({d.small()}, {d.of('NULL', '0', '5', '7')})"),
    "array_to_string": lambda d: f"array_to_string({d.of(d.texts(), d.small())}, {d.of(*SEPARATORS)})",
}  # fmt: skip

for _name, _op in [
    ("list_distance", "<->"),
    ("list_inner_product", ""),
    ("list_cosine_similarity", ""),
    ("list_cosine_distance", "<=>"),
    ("list_negative_inner_product", ""),
]:

    def _vector(d: Draw, name: str = _name, op: str = _op) -> str:
        n = d.r.randint(0, 3)
        pool = ["0", "1", "2", "3", "4", "8", "-1", "-2", "16"] + ["NULL"] * (d.r.random() < 0.1)
        a, b = (
            "[" + ", ".join(d.r.choice(pool) for _ in range(k)) + "]::DOUBLE[]"
            for k in (n, n if d.r.random() < 0.95 else n + 1)
        )
        return f"round({a} {op} {b}, 12)" if op and d.r.random() < 0.5 else f"round({name}({a}, {b}), 12)"

    FUNCTIONS[_name] = _vector


def fields(d: Draw) -> str:
    return (
        "{"
        + ", ".join(
            f"'{k}': {d.of('1', X, 'NULL::INTEGER', '[1, 2]')}" for k in d.r.sample(["a", "b", "c"], d.r.randint(1, 3))
        )
        + "}"
    )


FUNCTIONS |= {
    "struct_insert": lambda d: f"struct_insert({fields(d)}, {d.of('d', 'e', 'a', 'B')} := {d.of('1', X, 'NULL::DATE', '[1]')}{d.of('', ', f := 2', ', g := true')})",
    "struct_update": lambda d: f"struct_update({fields(d)}, {d.of('a', 'b', 'C', 'd')} := {d.of('1', X, 'NULL::DATE', '[1]')}{d.of('', ', f := 2', ', g := true')})",
    "json_set": put("json_set"), "json_insert": put("json_insert"), "json_replace": put("json_replace"),
    "json_remove": lambda d: f"json_remove({d.doc()}, {d.path()})",
    "json_merge_patch": lambda d: f"json_merge_patch({d.doc()}, {d.doc()}{d.of('', '', ', ' + d.doc())})",
    "json_deep_merge": lambda d: f"json_deep_merge({d.doc()}, {d.doc()})",
    "json_merge_patch_diff": lambda d: f"json_merge_patch_diff({d.doc()}, {d.doc()})",
    "json_contains": lambda d: f"json_contains({d.doc()}, {d.doc()})",
    "json_normalize": lambda d: f"json_normalize({d.doc()})", "json_strip_nulls": lambda d: f"json_strip_nulls({d.doc()})",
    "json_pretty": lambda d: f"replace(json_pretty({d.doc()}), chr(10), '~')",
    "json_value": lambda d: f"json_value({d.doc()}, {d.path()})",
}  # fmt: skip

FUNCTIONS |= {
    "list_concat": lambda d: f"list_concat({d.small()}, {d.small()}{d.of('', '', ', NULL', ', ' + d.small())})",
    "slice of BLOB": lambda d: f"({d.of(*BLOBS)})[{bound(d)}:{bound(d)}]",
    "maps without types": lambda d: d.of(f"map_contains(map([], []), {d.int()})", f"map_contains_value(map([], []), {d.int()})", f"map_keys({d.of('NULL', 'map([], [])')})", "map_values(map([], []))",
                                         f"map_contains_entry(map([], []), {d.int()}, {d.text()})", f"element_at(MAP {{'a': {d.int()}}}, {d.text()})", f"map_contains(MAP {{1: {d.text()}}}, {d.int()})"),
    "list_approx_count_distinct": lambda d: f"list_approx_count_distinct({d.list()})",
}  # fmt: skip


def main() -> None:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    out = [
        "# expressions made by generate.py, with DuckDB 2.0.1's types and values, time zone UTC. 'error': it refuses or fails."
    ]
    for name, make in FUNCTIONS.items():
        draw, seen, tries = Draw(name), set(), 0
        while len(seen) < PER_FUNCTION and tries < 20 * PER_FUNCTION:
            tries += 1
            text = make(draw)
            if text in seen:
                continue
            seen.add(text)
            try:
                typ, value = con.execute(f"SELECT typeof(x), x::VARCHAR FROM (SELECT {text} AS x)").fetchone()
            except duckdb.Error:
                typ, value = "error", ""
            value = "NULL" if value is None else value
            if "\t" in value or "\n" in value:
                continue
            out.append(f"{text}\t{typ}\t{value}")
        if len(seen) < PER_FUNCTION:
            print(f"{name}: {len(seen)} tuples")
    (pathlib.Path(__file__).parent / "duckdb_nested.tsv").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
