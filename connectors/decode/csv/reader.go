// Package csv cuts text into records of separated values, guesses how a file is written, and turns records into
// Arrow columns.
//
// Invariant: the quote character is always a quote, whatever a sample of the file has shown (RFC 4180).
package csv

import (
	"bytes"
	"fmt"
	"io"

	"github.com/riverbed/riverbed/core/errs"
)

// Dialect is how a file is written. A zero byte means: none.
type Dialect struct {
	Delim, Quote, Escape byte
}

// Default is RFC 4180.
var Default = Dialect{Delim: ',', Quote: '"', Escape: '"'}

// maxRecord bounds one record; a quote that never closes would take the whole file otherwise.
const maxRecord = 64 << 20

// Field is one value of a record.
type Field struct {
	Text   []byte // valid until the next call of Next
	Quoted bool
}

// Reader cuts a text into records.
type Reader struct {
	// KeepEmpty makes a record of an empty line: the NULL of a file of one column.
	KeepEmpty bool

	d      Dialect
	src    io.Reader
	buf    []byte
	pos    int // of the next record in buf
	eof    bool
	line   int // of the next record
	at     int // line of the last record
	fields []Field
	copied []byte // unescaped fields of the last record
	raw    []byte
}

// NewReader reads from src.
func NewReader(src io.Reader, d Dialect) *Reader { return &Reader{d: d, src: src, line: 1} }

// Line is the line in which the last record began, from 1.
func (r *Reader) Line() int { return r.at }

// Raw is the text of the last record, valid until the next call of Next.
func (r *Reader) Raw() []byte { return r.raw }

// Next returns the next record, or io.EOF. Empty lines are passed over, but for KeepEmpty.
func (r *Reader) Next() ([]Field, error) {
	for {
		n, lines, err := r.record()
		if err != nil {
			return nil, err
		}
		r.raw = bytes.TrimRight(r.buf[r.pos:r.pos+n], "\r\n")
		r.at = r.line
		r.pos += n
		r.line += lines
		if len(r.raw) > 0 || len(r.fields) > 1 || r.KeepEmpty {
			return r.fields, nil
		}
	}
}

// record cuts the record at pos; when the buffer ends within it, more is read and the cutting starts again.
func (r *Reader) record() (n, lines int, err error) {
	for {
		n, lines, ok, err := r.cut(r.buf[r.pos:])
		if err != nil {
			return 0, 0, err
		}
		if ok {
			return n, lines, nil
		}
		if r.eof {
			return 0, 0, io.EOF
		}
		if err := r.fill(); err != nil {
			return 0, 0, err
		}
	}
}

// fill reads more, behind what is not yet used.
func (r *Reader) fill() error {
	rest := len(r.buf) - r.pos
	if rest > maxRecord {
		return errs.New(errs.Source, "read", "line %d: a record of more than %d MiB; a quote is probably not closed", r.line, maxRecord>>20).
			WithHint("check the quote and escape options")
	}
	size := max(256<<10, 2*rest)
	buf := make([]byte, rest, size)
	copy(buf, r.buf[r.pos:])
	n, err := io.ReadFull(r.src, buf[rest:size])
	r.buf, r.pos = buf[:rest+n], 0
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		r.eof = true
		return nil
	}
	return err
}

// cut reads one record from the head of s. ok is false when s ends before the record does.
func (r *Reader) cut(s []byte) (n, lines int, ok bool, err error) {
	d := r.d
	r.fields, r.copied = r.fields[:0], r.copied[:0]
	if len(s) == 0 {
		return 0, 0, false, nil
	}
	i := 0
	for {
		if i < len(s) && s[i] == d.Quote && d.Quote != 0 {
			f, next, more, err := r.quoted(s, i, &lines)
			if err != nil || more {
				return 0, 0, false, err
			}
			r.fields = append(r.fields, f)
			i = next
		} else {
			start := i
			for i < len(s) && s[i] != d.Delim && s[i] != '\n' && s[i] != '\r' {
				i++
			}
			r.fields = append(r.fields, Field{Text: s[start:i]})
		}
		if i >= len(s) {
			return i, lines, r.eof, nil
		}
		switch s[i] {
		case d.Delim:
			i++
			if i >= len(s) && !r.eof {
				return 0, 0, false, nil
			}
		case '\r':
			if i+1 >= len(s) && !r.eof {
				return 0, 0, false, nil
			}
			i++
			if i < len(s) && s[i] == '\n' {
				i++
			}
			return i, lines + 1, true, nil
		default:
			return i + 1, lines + 1, true, nil
		}
	}
}

// quoted reads the field whose quote is at i; more says that s ends too early.
func (r *Reader) quoted(s []byte, i int, lines *int) (f Field, next int, more bool, err error) {
	d := r.d
	i++
	start, from := i, -1 // from: where the field begins in copied, once it has an escape
	for i < len(s) {
		c := s[i]
		switch {
		case c == d.Escape && d.Escape != 0 && i+1 < len(s) && (s[i+1] == d.Quote || s[i+1] == d.Escape):
			if from < 0 {
				from = len(r.copied)
			}
			r.copied = append(append(r.copied, s[start:i]...), s[i+1])
			i += 2
			start = i
		case c == d.Quote:
			if i+1 >= len(s) && !r.eof {
				return f, 0, true, nil // the next byte may be a second quote
			}
			if i+1 < len(s) && s[i+1] != d.Delim && s[i+1] != '\n' && s[i+1] != '\r' {
				return f, 0, false, errs.New(errs.Source, "read", "line %d: %q follows a closing quote", r.line+*lines, s[i+1]).
					WithHint("a quote within a quoted value is written twice; check the quote and escape options")
			}
			f = Field{Text: s[start:i], Quoted: true}
			if from >= 0 {
				r.copied = append(r.copied, s[start:i]...)
				f.Text = r.copied[from:len(r.copied):len(r.copied)]
			}
			return f, i + 1, false, nil
		default:
			if c == '\n' {
				*lines++
			}
			i++
		}
	}
	if r.eof {
		return f, 0, false, errs.New(errs.Source, "read", "line %d: a quote is not closed before the file ends", r.line).
			WithHint("the file may be truncated; check the quote option")
	}
	return f, 0, true, nil
}

// ParseDialect checks the options delim, quote and escape.
func ParseDialect(delim, quote, escape string) (Dialect, error) {
	d := Default
	for _, o := range []struct {
		name, text string
		to         *byte
		none       bool
	}{{"delim", delim, &d.Delim, false}, {"quote", quote, &d.Quote, true}, {"escape", escape, &d.Escape, true}} {
		switch text := o.text; {
		case text == `\t`:
			*o.to = '\t'
		case text == "" && o.none:
			*o.to = 0
		case len(text) == 1:
			*o.to = text[0]
		default:
			return d, fmt.Errorf("the option %q takes one character, not %q", o.name, o.text)
		}
	}
	return d, nil
}
