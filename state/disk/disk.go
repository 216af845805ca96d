// Package disk opens the state.Store that this build keeps on disk: Pebble, or RocksDB with the tag rocksdb.
//
// Invariant: the two are told apart here and nowhere else; both pass the suite of state/statetest.
package disk
