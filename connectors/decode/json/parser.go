package json

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting, as every recursion needs a bound.
const maxDepth = 512

// parser walks one JSON text. Errors are made on failure only; nothing else allocates, save strings with escapes,
// which are written into a buffer that is kept.
type parser struct {
	data    []byte
	pos     int
	depth   int
	scratch []byte
	strict  bool // NaN and Infinity are no numbers
}

var (
	errEnd       = errors.New("the JSON text ends too early")
	errSurrogate = errors.New("a string holds an unpaired surrogate")
	errUTF8      = errors.New("a string holds bytes that are not UTF-8")
	errDepth     = fmt.Errorf("the JSON text is nested deeper than %d levels", maxDepth)
)

func (p *parser) fail(want string) error {
	if p.pos >= len(p.data) {
		return errEnd
	}
	return fmt.Errorf("byte %d of the JSON text is %q where %s should stand", p.pos, p.data[p.pos], want)
}

// peek skips white space and returns the byte that follows, 0 at the end.
func (p *parser) peek() byte {
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return c
		}
	}
	return 0
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str reads a string with its quotes. The result is part of the text, or of the scratch buffer when it had escapes;
// it is valid until the next call.
func (p *parser) str() ([]byte, error) {
	if p.peek() != '"' {
		return nil, p.fail("a string")
	}
	p.pos++
	start, data := p.pos, p.data
	i := start
	var high uint64
	// Eight bytes at a time, as long as none of them is a quote, a backslash or a control character.
	for i+8 <= len(data) {
		x := binary.LittleEndian.Uint64(data[i:])
		quote, back := x^(ones*'"'), x^(ones*'\\')
		special := ((quote - ones) &^ quote) | ((back - ones) &^ back) | ((x - ones*0x20) &^ x)
		if special &= highs; special != 0 {
			// The lowest mark is exact; those above it may come from its borrow.
			n := bits.TrailingZeros64(special)
			high |= x & (1<<n - 1) &^ (0xff << (n &^ 7))
			i += n / 8
			break
		}
		high |= x
		i += 8
	}
	for ; i < len(data); i++ {
		c := data[i]
		if c == '"' {
			p.pos = i + 1
			s := data[start:i]
			if high&highs != 0 && !utf8.Valid(s) {
				return nil, errUTF8
			}
			return s, nil
		}
		if c == '\\' {
			return p.escaped(start, i)
		}
		if c < 0x20 {
			p.pos = i
			return nil, fmt.Errorf("byte %d of the JSON text is a control character within a string", i)
		}
		high |= uint64(c)
	}
	p.pos = len(data)
	return nil, errEnd
}

// escaped reads the rest of a string whose first backslash is at i.
func (p *parser) escaped(start, i int) ([]byte, error) {
	data := p.data
	buf := append(p.scratch[:0], data[start:i]...)
	for i < len(data) {
		c := data[i]
		switch {
		case c == '"':
			p.pos, p.scratch = i+1, buf
			if !utf8.Valid(buf) {
				return nil, errUTF8
			}
			return buf, nil
		case c < 0x20:
			p.pos = i
			return nil, fmt.Errorf("byte %d of the JSON text is a control character within a string", i)
		case c != '\\':
			buf = append(buf, c)
			i++
			continue
		}
		if i+1 >= len(data) {
			return nil, errEnd
		}
		i++
		switch data[i] {
		case '"', '\\', '/':
			buf = append(buf, data[i])
		case 'b':
			buf = append(buf, '\b')
		case 'f':
			buf = append(buf, '\f')
		case 'n':
			buf = append(buf, '\n')
		case 'r':
			buf = append(buf, '\r')
		case 't':
			buf = append(buf, '\t')
		case 'u':
			r, ok := hex4(data[i+1:])
			if !ok {
				p.pos = i
				return nil, p.fail("four hexadecimal digits after \\u")
			}
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if i+2 < len(data) && data[i+1] == '\\' && data[i+2] == 'u' {
					low, ok = hex4(data[i+3:])
				}
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return nil, errSurrogate
				}
				i += 6
			}
			buf = utf8.AppendRune(buf, r)
		default:
			p.pos = i
			return nil, p.fail("an escape")
		}
		i++
	}
	p.pos = len(data)
	return nil, errEnd
}

func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range s[:4] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return r, true
}

// specials are the floats that JSON has no numbers for, as files of DuckDB and of Python's json have them.
var specials = [][]byte{[]byte("NaN"), []byte("Infinity"), []byte("-Infinity")}

// number reads a number and returns its text.
func (p *parser) number() ([]byte, error) {
	data, start := p.data, p.pos
	i := start
	if i < len(data) && data[i] == '-' {
		i++
	}
	switch {
	case i < len(data) && (data[i] == 'N' || data[i] == 'I') && !p.strict:
		for _, s := range specials {
			if bytes.HasPrefix(data[start:], s) {
				p.pos = start + len(s)
				return s, nil
			}
		}
		return nil, p.fail("a number")
	case i < len(data) && data[i] == '0':
		i++
	case i < len(data) && data[i]-'1' <= 8:
		i = digits(data, i)
	default:
		p.pos = i
		return nil, p.fail("a number")
	}
	if i < len(data) && data[i] == '.' {
		from := i + 1
		if i = digits(data, from); i == from {
			p.pos = i
			return nil, p.fail("a digit after the point")
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		from := i
		if i = digits(data, from); i == from {
			p.pos = i
			return nil, p.fail("a digit of the exponent")
		}
	}
	p.pos = i
	return data[start:i], nil
}

func digits(data []byte, i int) int {
	for i < len(data) && data[i]-'0' <= 9 {
		i++
	}
	return i
}

var (
	litTrue  = []byte("true")
	litFalse = []byte("false")
	litNull  = []byte("null")
)

// literal reads true, false or null.
func (p *parser) literal() ([]byte, error) {
	for _, lit := range [][]byte{litTrue, litFalse, litNull} {
		if bytes.HasPrefix(p.data[p.pos:], lit) {
			p.pos += len(lit)
			return lit, nil
		}
	}
	return nil, p.fail("a JSON value")
}

// skip reads any value and drops it.
func (p *parser) skip() error {
	var err error
	switch c := p.peek(); c {
	case '"':
		_, err = p.str()
	case '{':
		return p.object(func([]byte) error { return p.skip() })
	case '[':
		return p.array(p.skip)
	case 't', 'f', 'n':
		_, err = p.literal()
	default:
		_, err = p.number()
	}
	return err
}

// object calls member for each key; member must read the value. The key is valid until then.
func (p *parser) object(member func(key []byte) error) error {
	if p.depth++; p.depth > maxDepth {
		return errDepth
	}
	if p.peek() != '{' {
		return p.fail("an object")
	}
	p.pos++
	if p.peek() == '}' {
		p.pos++
		p.depth--
		return nil
	}
	for {
		key, err := p.str()
		if err != nil {
			return err
		}
		if p.peek() != ':' {
			return p.fail("a colon")
		}
		p.pos++
		if err := member(key); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			p.depth--
			return nil
		default:
			return p.fail("a comma or the end of the object")
		}
	}
}

// array calls element for each element; element must read it.
func (p *parser) array(element func() error) error {
	if p.depth++; p.depth > maxDepth {
		return errDepth
	}
	if p.peek() != '[' {
		return p.fail("an array")
	}
	p.pos++
	if p.peek() == ']' {
		p.pos++
		p.depth--
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			p.depth--
			return nil
		default:
			return p.fail("a comma or the end of the array")
		}
	}
}

// raw reads any value and returns its text.
func (p *parser) raw() ([]byte, error) {
	p.peek()
	start := p.pos
	p.strict = true // a value of type JSON is JSON
	err := p.skip()
	p.strict = false
	if err != nil {
		return nil, err
	}
	return p.data[start:p.pos], nil
}

// end checks that nothing follows.
func (p *parser) end() error {
	if p.peek(); p.pos < len(p.data) {
		return fmt.Errorf("something follows the JSON value at byte %d", p.pos)
	}
	return nil
}

// compact appends text without the white space outside strings.
func compact(dst, text []byte) []byte {
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			dst = append(dst, c)
			i++
			c = text[i]
		case c == '"':
			inString = !inString
		case !inString && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
