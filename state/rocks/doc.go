// Package rocks keeps a state.Store in RocksDB, in a folder of its own. It is built with the tags rocksdb and grocksdb_no_link, beside
// the library that tools/rocksdb.sh fetches.
//
// Invariant: nothing here outlives the process. There is no log and nothing is synced; a folder that an earlier process has left is
// emptied.
package rocks
