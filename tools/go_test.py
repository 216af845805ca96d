"""Run `go test` as usual, and note which tests were skipped.

    python tools/go_test.py NAME [-C FOLDER] [go test arguments…]

Prints what `go test` prints (output of failing tests, one closing line a package) and writes build/skips/NAME.txt:
a line `package.Test: reason` for each skipped test, which check_skips.py reads. No test is ended for taking long.
"""

import json
import pathlib
import subprocess
import sys
from collections import defaultdict


def main(name: str, arguments: list[str]) -> int:
    folder = None  # -C comes first for go, and notes stay here
    if arguments[:1] == ["-C"]:
        folder, arguments = arguments[1], arguments[2:]
    command = ["go", "test", "-json", "-timeout", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    output: dict[tuple[str, str], list[str]] = defaultdict(list)
    skips: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        if not line.startswith("{"):
            print(line, end="")
            continue
        event = json.loads(line)
        package, test = event.get("Package", event.get("ImportPath", "")), event.get("Test", "")
        match event["Action"]:
            case "output" if test:
                output[package, test].append(event["Output"])
            case "output" if event["Output"] not in ("PASS\n", "FAIL\n"):
                print(event["Output"], end="", flush=True)
            case "build-output":
                print(event["Output"], end="", flush=True)
            case "fail" if test:
                print("".join(output.pop((package, test), [])), end="", flush=True)
            case "skip" if test:
                said = [o.strip() for o in output.pop((package, test), []) if not o.startswith(("===", "---"))]
                skips.append(f"{package}.{test}: {' '.join(said)}")
            case "pass" if test:
                output.pop((package, test), None)
    notes = pathlib.Path("build/skips")
    notes.mkdir(parents=True, exist_ok=True)
    (notes / f"{name}.txt").write_text("".join(s + "\n" for s in skips))
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
