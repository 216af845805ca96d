// Package sqltest plays what happens to relations against a query, in one step, row by row, at random cuttings, with
// restarts, and compares the accumulated changelog with the batch answer after every step. The parity, property and
// random-query tests are three sources of cases for it.
//
// Invariant: what is expected never comes from package incremental. Which rows are late and what a watermark has closed is
// worked out here from the definitions (model.go); the answer over those rows is the batch engine's, which DuckDB checks.
package sqltest
