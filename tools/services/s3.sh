#!/usr/bin/env bash
# The S3 service of tests and benchmarks: versitygw over a folder, on a loopback port. It is built from its module, once per machine.
#
#   tools/services/s3.sh binary            prints the path of the program
#   tools/services/s3.sh run PORT FOLDER   serves the folder until its standard input ends, so that it ends with whoever started it
#
# Access key and secret are test and testsecret; each folder in FOLDER is a bucket. RIVERBED_SERVICES (~/.cache/riverbed/services) is the
# folder of the program.
set -euo pipefail

version=v1.8.0
home=${RIVERBED_SERVICES:-${XDG_CACHE_HOME:-$HOME/.cache}/riverbed/services}/s3
program=$home/versitygw-$version

build() {
  mkdir -p "$home"
  exec 9>"$home/lock" # two that start at once build once
  flock 9
  [ -x "$program" ] || "$(dirname "$0")/../go_tool.sh" github.com/versity/versitygw/cmd/versitygw "$version" "$home" >&2
  exec 9>&-
}

case ${1:-} in
  binary) build; echo "$program" ;;
  run)
    build
    mkdir -p "$3/data" "$3/tmp"
    ROOT_ACCESS_KEY=test ROOT_SECRET_KEY=testsecret "$program" --port "127.0.0.1:$2" --quiet posix "$3/data" </dev/null &
    trap 'kill -KILL $! 2>/dev/null || true' EXIT
    while read -r; do :; done
    ;;
  *) sed -n '2,10p' "$0" >&2; exit 2 ;;
esac
