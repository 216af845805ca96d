#!/usr/bin/env bash
# make lint: every check runs, the first failure does not hide the next; the exit code says whether all passed.
set -uo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
golangci=golangci-lint-$(sed -n 's/^GOLANGCI_VERSION=//p' capi/build.env)
staticcheck=staticcheck-$(sed -n 's/^STATICCHECK_VERSION=//p' capi/build.env)
failed=()

check() { # name, command…
  local name=$1
  shift
  say "$name"
  "$@" || failed+=("$name")
}

formatted() {
  local out
  out=$(gofmt -l $(git ls-files '*.go'))
  [ -z "$out" ] || { printf 'not formatted, run gofmt -w:\n%s\n' "$out"; return 1; }
}

# The module of the library of Iceberg metadata, by the flags of its build: others would compile all of it again.
iceberg() { (cd capi/iceberg && GOFLAGS=$(sed -n 's/^GO_BUILD_FLAGS=//p' ../build.env) "$@"); }

check gofmt formatted
check "go vet" go vet ./...
check "source tree" go test -count=1 ./tests/go/tree
check staticcheck "$staticcheck" ./...
check golangci-lint "$golangci" run ./...
check "go vet of capi/iceberg" iceberg go vet ./...
check "staticcheck of capi/iceberg" iceberg "$staticcheck" ./...
check "golangci-lint of capi/iceberg" iceberg "$golangci" run ./...
check ruff ruff check python tests/python tools examples bench setup.py
check "ruff format" ruff format --check python tests/python tools examples bench setup.py
check "mypy --strict" mypy
check stubtest env PYTHONPATH=python python -m mypy.stubtest riverbed._native

if [ ${#failed[@]} -gt 0 ]; then
  printf 'lint failed: %s\n' "${failed[*]}" >&2
  exit 1
fi
say "lint is clean"
