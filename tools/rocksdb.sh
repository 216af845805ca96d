#!/usr/bin/env bash
# Fetches RocksDB for builds with the tag rocksdb and prints the environment that such a build needs; `eval "$(tools/rocksdb.sh)"`.
# The library is the one that RocksDB publishes for Java: it has the C API, needs glibc 2.17, and is an ordinary shared library,
# because a Go library with RocksDB linked into it has too much thread-local storage to be loaded.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
version=11.1.2
case $(uname -m) in
  x86_64) name=librocksdbjni-linux64.so sum=677f59bfa16175a2d0a165b2e9dbee6e64d242ac3747b25e10c94033d5f37e06 ;;
  *) stop "RocksDB is not fetched for $(uname -m)" "build without the tag rocksdb: state that leaves memory is then kept in pages of its own" ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/riverbed/rocksdb-$version
check() { echo "$sum  $folder/$name" | sha256sum --check --status 2>/dev/null; }
if ! check; then
  say "fetching RocksDB $version"
  mkdir -p "$folder"
  repository=${MAVEN_REPOSITORY:-$HOME/.m2/repository}
  jar=$repository/org/rocksdb/rocksdbjni/$version/rocksdbjni-$version.jar
  [ -e "$jar" ] || mvn -q dependency:get -Dmaven.repo.local="$repository" -Dartifact="org.rocksdb:rocksdbjni:$version" -Dtransitive=false >&2
  "$(find_python)" -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' "$jar" "$name" "$folder"
  check || stop "$folder/$name is not the RocksDB that was expected" "remove it and start again"
fi
mkdir -p "$folder/include/rocksdb"
cp -f "$(go list -m -f '{{.Dir}}' github.com/linxGnu/grocksdb)/c.h" "$folder/include/rocksdb/c.h"
cat <<EOF
export CGO_CFLAGS='-O2 -I$folder/include' CGO_LDFLAGS='-L$folder -l:$name -Wl,-rpath,\$ORIGIN -Wl,-rpath,$folder' CGO_LDFLAGS_ALLOW='.*'
export ROCKSDB_LIBRARY='$folder/$name' ROCKSDB_TAGS=rocksdb,grocksdb_no_link
EOF
