#!/usr/bin/env bash
# Runs what must give the same bits on every build: the golden hash of all functions, the kernels, the golden files.
# Builds: as usual; amd64 with the instructions of v3 (fused multiply-add among them); no assembly at all, in the
# libraries neither; arm64, emulated by qemu where the machine is another (the hash and the kernels alone: it is slow).
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh

suites=(./core/... ./incremental/... ./state/... ./tests/go/parity)

say "as usual"
go test -timeout 0 "${suites[@]}"
if [ "$(go env GOARCH)" = amd64 ]; then
  say "amd64 v3"
  GOAMD64=v3 go test -timeout 0 "${suites[@]}"
fi
say "without assembly"
go test -timeout 0 -tags noasm,purego "${suites[@]}"

say "arm64"
run=()
if [ "$(go env GOARCH)" != arm64 ]; then
  if ! have qemu-aarch64-static; then
    { [ "$(id -u)" = 0 ] && have apt-get; } || stop "qemu-aarch64-static is missing" "install qemu-user-static and start again"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user-static >/dev/null
  fi
  run=(-exec qemu-aarch64-static)
fi
GOARCH=arm64 CGO_ENABLED=0 go test -timeout 0 "${run[@]}" -run 'TestHash|TestDuckDB' ./core/fn
GOARCH=arm64 CGO_ENABLED=0 go test -timeout 0 "${run[@]}" ./core/kernels ./core/types ./core/rowkey
