"""make bench CASE=name: run one case, or all, and print its table; without a name of a case, list them.

Each case is a folder with run.py and a note in its docstring. CASE=name/part runs a part, such as one question.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType

HERE = pathlib.Path(__file__).resolve().parent


def cases() -> list[str]:
    return sorted(p.parent.name for p in HERE.glob("*/run.py"))


def load(case: str) -> ModuleType:
    """Import a case by its file: some are named as packages that exist (json), or as none may be (tpch-mem)."""
    spec = importlib.util.spec_from_file_location(f"bench_{case}", HERE / case / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(argv: list[str]) -> int:
    sys.path.insert(0, str(HERE))
    name, _, part = (argv[0] if argv else "all").partition("/")
    if name in ("-h", "--help"):
        print("python bench/run.py CASE[/PART] [options]\n")
        for case in cases():
            about = (load(case).__doc__ or "").splitlines()[0]
            print(f"  {case:<12} {about}")
        return 0
    if name != "all" and name not in cases():
        print(f"bench: no case {name!r}; there are {', '.join(cases())}", file=sys.stderr)
        return 2
    failed = []
    # What has to be fetched by the gigabyte runs only when it is named.
    everyday = [c for c in cases() if not getattr(load(c), "ONLY_BY_NAME", False)]
    for case in everyday if name == "all" else [name]:
        try:
            load(case).main([*([part] if part else []), *argv[1:]])
        except SystemExit as e:  # a case that failed, or whose answers differ, does not keep the next ones from running
            if e.code:
                failed.append(f"{case}: {e.code}" if isinstance(e.code, str) else case)
    if failed:
        print("bench failed: " + "; ".join(failed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
