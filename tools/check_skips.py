"""Fail when a test was skipped that tests/skips.txt does not name.

tests/skips.txt has a line `pattern: reason` for each allowed skip; the pattern is a shell pattern over
`package.Test` (Go) or `module.Class::test` (pytest).
"""

import fnmatch
import pathlib
import sys
import xml.etree.ElementTree as ET


def skipped(folder: pathlib.Path) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text().splitlines():
            name, _, reason = line.partition(": ")
            found.append((name, reason))
    for path in sorted(folder.glob("*.xml")):
        for case in ET.parse(path).iter("testcase"):
            for skip in case.iter("skipped"):
                found.append((f"{case.get('classname')}::{case.get('name')}", skip.get("message") or ""))
    return found


def allowed(path: pathlib.Path) -> list[str]:
    patterns = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(": ")
            if not reason.strip():
                sys.exit(f"{path}:{number}: a skip needs a reason: `pattern: reason`")
            patterns.append(pattern.strip())
    return patterns


def main() -> int:
    patterns = allowed(pathlib.Path("tests/skips.txt"))
    unknown = [
        (n, r) for n, r in skipped(pathlib.Path("build/skips")) if not any(fnmatch.fnmatch(n, p) for p in patterns)
    ]
    for name, reason in unknown:
        print(f"skipped, and tests/skips.txt does not say why it may be: {name} ({reason})", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
