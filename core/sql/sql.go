// Package sql turns SQL text into a syntax tree and back: a hand-written lexer,
// a recursive-descent parser with a Pratt loop for expressions, and a printer.
// The dialect is DuckDB's with streaming extensions; the parser knows no
// catalog, no types and no functions.
//
// Invariant: parse(print(x)) equals x but for positions, for every tree the parser makes.
package sql
