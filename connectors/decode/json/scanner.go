package json

import (
	"bytes"
	"io"
)

// Scanner cuts a text into records: values one after another, or the elements of one array.
type Scanner struct {
	p     parser
	array bool
	begun bool
	done  bool
}

// NewScanner scans text.
func NewScanner(text []byte, array bool) *Scanner {
	return &Scanner{p: parser{data: text}, array: array}
}

// Next returns the next record and where it begins, or io.EOF. After an error in the text nothing more can be read.
func (s *Scanner) Next() (record []byte, at int, err error) {
	p := &s.p
	p.depth = 0
	c := p.peek()
	if s.done || c == 0 && !s.array {
		return nil, p.pos, io.EOF
	}
	if s.array {
		switch {
		case !s.begun && c == '[':
			p.pos++
			if c = p.peek(); c == ']' {
				return nil, p.pos, s.finish()
			}
		case s.begun && c == ']':
			return nil, p.pos, s.finish()
		case s.begun && c == ',':
			p.pos++
		default:
			return nil, p.pos, p.fail("an array, a comma or its end")
		}
		s.begun = true
	}
	p.peek()
	at = p.pos
	record, err = p.raw()
	return record, at, err
}

// finish ends the array.
func (s *Scanner) finish() error {
	s.p.pos++
	s.done = true
	if rest := bytes.TrimSpace(s.p.data[s.p.pos:]); len(rest) > 0 {
		return s.p.end()
	}
	return io.EOF
}

// Stop makes Next return io.EOF.
func (s *Scanner) Stop() { s.done = true }
