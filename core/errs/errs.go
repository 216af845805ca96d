// Package errs holds the one error type of the engine: its kind, what was being
// done, where in the SQL, and what the user can do about it.
//
// Invariant: every error that leaves the engine is an *Error, so that the C ABI
// and Python can map its kind to an exception class without reading its text.
package errs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// Kind says which part of the contract was broken. The numbers cross the C ABI
// and are never renumbered or reused.
type Kind uint8

const (
	Internal    Kind = 1  // a bug of ours
	Schema      Kind = 2  // unknown name, types that do not unify, bad SQL
	Source      Kind = 3  // missing file, broker down, corrupt input
	State       Kind = 4  // corrupt store, missing manifest or object
	Watermark   Kind = 5  // an explicitly set watermark went backwards
	Checkpoint  Kind = 6  // a checkpoint could not be written
	ExactlyOnce Kind = 7  // a sink cannot do what was asked
	Data        Kind = 8  // a value cannot be computed: overflow, bad cast
	Cancelled   Kind = 9  // the caller asked us to stop
	Usage       Kind = 10 // a call out of order, after close, or with a wrong option
	Unsupported Kind = 11 // parsed, but refused while planning, in the mode named
)

// Info describes a kind to other layers. The table below is the only place that
// ties a kind to its Python class and its name on the wire.
type Info struct {
	Kind   Kind
	Name   string // stable word, used in JSON errors and logs
	Python string // exception class in the Python package
}

// Kinds lists every kind once.
var Kinds = []Info{
	{Internal, "internal", "RiverbedInternalError"},
	{Schema, "schema", "RiverbedSchemaError"},
	{Source, "source", "RiverbedSourceError"},
	{State, "state", "RiverbedStateError"},
	{Watermark, "watermark", "RiverbedWatermarkError"},
	{Checkpoint, "checkpoint", "RiverbedCheckpointError"},
	{ExactlyOnce, "exactly_once", "RiverbedExactlyOnceError"},
	{Data, "data", "RiverbedDataError"},
	{Cancelled, "cancelled", "RiverbedCancelledError"},
	{Usage, "usage", "RiverbedUsageError"},
	{Unsupported, "unsupported", "RiverbedUnsupportedError"},
}

// Info returns the table entry of k.
func (k Kind) Info() Info {
	for _, i := range Kinds {
		if i.Kind == k {
			return i
		}
	}
	return Kinds[0]
}

func (k Kind) String() string { return k.Info().Name }

// Pos is a place in the SQL text. Line and Col count from 1, Col in characters;
// Offset is the byte offset. The zero Pos means "no place".
type Pos struct {
	Offset, Line, Col int
}

// Valid reports whether p names a place.
func (p Pos) Valid() bool { return p.Line > 0 }

// Error is the engine's error.
type Error struct {
	Kind      Kind
	Op        string // what we were doing: "parse", "bind", "scan"
	Pos       Pos
	Msg       string
	Hint      string // what the user can do; may be empty
	Transient bool   // a retry may help
	SQL       string // the statement, once known; used to draw the caret
	Err       error  // the cause
	Row       *Row   // the row that it is about, if it is about one
}

// Row says on which row an expression failed.
type Row struct {
	Of     string // in words: "row 17 of a.csv", "a row of the aggregate's output"; empty until somebody knows
	Values string // what stands in it, as a struct
}

func (r *Row) String() string {
	if r.Of == "" {
		return "a row with " + r.Values
	}
	if r.Values == "" {
		return r.Of
	}
	return r.Of + ": " + r.Values
}

// E makes an error. A trailing error among args that the format wraps with %w is kept as cause.
func E(kind Kind, op string, pos Pos, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Op: op, Pos: pos, Msg: wrapped.Error(), Err: errors.Unwrap(wrapped)}
}

// New is E without a place.
func New(kind Kind, op, format string, args ...any) *Error {
	return E(kind, op, Pos{}, format, args...)
}

// Bug reports a broken invariant of ours.
func Bug(op, format string, args ...any) *Error {
	return New(Internal, op, format, args...).WithHint("this is a bug in Riverbed; please report it with the query that caused it")
}

// Because makes an error about what the user named out of what went wrong below it: kind, hint and whether a retry helps come from there. kind and
// hint stand in where it says none. The end of a context stays what it is.
func Because(err error, kind Kind, op, hint, format string, args ...any) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	below := &Error{Kind: kind}
	errors.As(err, &below)
	if below.Hint != "" {
		hint = below.Hint
	}
	reason, _, _ := strings.Cut(err.Error(), "\nHint: ")
	out := New(below.Kind, op, "%s: %s", fmt.Sprintf(format, args...), reason).WithHint("%s", hint)
	out.Err, out.Transient = err, below.Transient
	return out
}

// WithHint sets what the user can do.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// AsTransient marks the error as worth a retry.
func (e *Error) AsTransient() *Error {
	e.Transient = true
	return e
}

// WithSQL remembers the statement, so that Error can point at the place.
func (e *Error) WithSQL(sql string) *Error {
	if e.SQL == "" {
		e.SQL = sql
	}
	return e
}

// Message is what is wrong, and in which row where that is known; Error adds place and hint.
func (e *Error) Message() string {
	if e.Row == nil {
		return e.Msg
	}
	return e.Msg + ", in " + e.Row.String()
}

// Error prints the message; with a known statement and place also the line and a caret.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message())
	if e.Pos.Valid() {
		fmt.Fprintf(&b, " (line %d, column %d)", e.Pos.Line, e.Pos.Col)
		if caret := Caret(e.SQL, e.Pos); caret != "" {
			b.WriteString("\n\n")
			b.WriteString(caret)
		}
	}
	if e.Hint != "" {
		b.WriteString("\nHint: ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Caret prints the line of sql that holds pos, and a caret below the place.
func Caret(sql string, pos Pos) string {
	if sql == "" || !pos.Valid() {
		return ""
	}
	lines := strings.Split(sql, "\n")
	if pos.Line > len(lines) {
		return ""
	}
	line := []rune(strings.ReplaceAll(strings.TrimRight(lines[pos.Line-1], "\r"), "\t", " "))
	col := min(max(pos.Col, 1), len(line)+1)
	const width = 100 // a long line is cut around the place
	start := 0
	if col > width*3/4 {
		start = col - width/2
	}
	end := min(len(line), start+width)
	return string(line[start:end]) + "\n" + strings.Repeat(" ", col-1-start) + "^"
}

// As returns err as an *Error; a foreign error becomes an internal one.
func As(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Op: "run", Msg: err.Error(), Err: err}
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// Recovered turns what recover() returned into an error: an *Error that was panicked with stays itself, anything
// else is a bug, reported with the place where it happened.
func Recovered(op string, r any) *Error {
	if e, ok := r.(*Error); ok {
		return e
	}
	return Bug(op, "panic: %v\n%s", r, stack())
}

// stack is the part of the stack that helps: the frames from the panic down, without the runtime's.
func stack() string {
	lines := strings.Split(string(debug.Stack()), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+2 < len(lines) {
			lines = lines[i+2:]
			break
		}
	}
	return strings.Join(lines[:min(len(lines), 16)], "\n")
}
