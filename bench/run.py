"""make bench CASE=name: run one case, or all, and print its table.

Each case is a folder with run.py and a note in its docstring.
"""

from __future__ import annotations

import importlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def cases() -> list[str]:
    return sorted(p.parent.name for p in HERE.glob("*/run.py"))


def main(argv: list[str]) -> int:
    sys.path.insert(0, str(HERE))
    name, _, part = (argv[0] if argv else "all").partition("/")
    if name != "all" and name not in cases():
        print(f"bench: no case {name!r}; there are {', '.join(cases())}", file=sys.stderr)
        return 2
    for case in cases() if name == "all" else [name]:
        importlib.import_module(f"{case}.run").main([*([part] if part else []), *argv[1:]])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
