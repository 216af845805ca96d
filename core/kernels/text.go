package kernels

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// ASCII reports whether b holds no byte above 127.
func ASCII(b []byte) bool {
	const high = 0x8080808080808080
	for len(b) >= 32 {
		x := binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[8:]) | binary.LittleEndian.Uint64(b[16:]) | binary.LittleEndian.Uint64(b[24:])
		if x&high != 0 {
			return false
		}
		b = b[32:]
	}
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b)&high != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// LowerASCII lower-cases ASCII in place.
func LowerASCII(b []byte) {
	for i, c := range b {
		b[i] = c + bit(c-'A' < 26)<<5
	}
}

// UpperASCII upper-cases ASCII in place.
func UpperASCII(b []byte) {
	for i, c := range b {
		b[i] = c - bit(c-'a' < 26)<<5
	}
}

// Chars counts the characters (code points) of UTF-8.
func Chars(b []byte) int {
	n := 0
	for _, c := range b {
		if c&0xC0 != 0x80 {
			n++
		}
	}
	return n
}

// Lengths counts the characters of each text. Where all are ASCII they are the differences of the offsets.
func Lengths(out []int64, t Texts) {
	n := len(out)
	offs := t.Offs[:n+1]
	if ASCII(t.Data[offs[0]:offs[n]]) {
		from := offs[0]
		for i, to := range offs[1:] {
			out[i] = int64(to - from)
			from = to
		}
		return
	}
	for i := range out {
		out[i] = int64(Chars(t.Data[offs[i]:offs[i+1]]))
	}
}

// Replace replaces every occurrence of a text that is not empty, in all texts at once: what lies between two hits is
// copied in one piece, however many texts it spans.
func Replace(t Texts, n int, from, to []byte) (offs []int32, data []byte) {
	offs = make([]int32, n+1)
	start, end := int(t.Offs[0]), int(t.Offs[n])
	data = make([]byte, 0, end-start)
	copied, at, row := start, start, 0
	flush := func(upTo int) { // copies the input up to there, and closes the texts that end in it
		for row < n && int(t.Offs[row+1]) <= upTo {
			row++
			offs[row] = int32(len(data) + int(t.Offs[row]) - copied)
		}
		data = append(data, t.Data[copied:upTo]...)
		copied = upTo
	}
	for at < end {
		var hit int
		if len(from) == 1 {
			hit = bytes.IndexByte(t.Data[at:end], from[0])
		} else {
			hit = bytes.Index(t.Data[at:end], from)
		}
		if hit < 0 {
			break
		}
		at += hit
		flush(at)
		if at+len(from) > int(t.Offs[row+1]) { // it reaches into the next text
			at++
			continue
		}
		data = append(data, to...)
		at += len(from)
		copied = at
	}
	flush(end)
	for ; row < n; row++ { // empty texts at the end, and one that ends with a hit
		offs[row+1] = int32(len(data))
	}
	return offs, data
}

// SkipChars is the byte offset behind the first n characters, at most len(b).
func SkipChars(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		i++
		for i < len(b) && b[i]&0xC0 == 0x80 {
			i++
		}
	}
	return i
}

// Substring is SQL's substring: start counts characters from 1, or from the end when negative; a negative length
// reaches to the left. An absent length is math.MaxInt32 or more.
func Substring(b []byte, start, length int64) []byte {
	begin := start - 1
	if start < 0 {
		begin = int64(Chars(b)) + start
	}
	end := begin + length
	if length < 0 {
		begin, end = end, begin
	}
	if begin < 0 {
		begin = 0
	}
	if end <= begin {
		return nil
	}
	if end <= int64(len(b)) && ASCII(b[:end]) {
		return b[begin:end]
	}
	from := SkipChars(b, int(begin))
	if end-begin >= int64(len(b)) {
		return b[from:]
	}
	return b[from : from+SkipChars(b[from:], int(end-begin))]
}

// Pattern is a compiled LIKE pattern: parts between %, each matched literally; '_' is any character. Matching takes linear
// time for patterns without '_', and at worst the product of both lengths with it; nothing backtracks further than one %.
type Pattern struct {
	parts      [][]byte // literal parts between %
	single     bool     // there is no %
	general    []rune   // set when the pattern holds '_': the pattern with wildcards as the runes below
	hasGeneral bool
}

const (
	anyRun  = rune(-1) // %
	anyChar = rune(-2) // _
)

// CompileLike compiles a LIKE pattern; escape 0 is none. ok is false when the pattern ends with the escape character.
func CompileLike(pattern string, escape rune) (p *Pattern, ok bool) {
	p = &Pattern{}
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			p.general = append(p.general, r)
			escaped = false
		case escape != 0 && r == escape:
			escaped = true
		case r == '%':
			if n := len(p.general); n == 0 || p.general[n-1] != anyRun {
				p.general = append(p.general, anyRun)
			}
		case r == '_':
			p.general = append(p.general, anyChar)
			p.hasGeneral = true
		default:
			p.general = append(p.general, r)
		}
	}
	if escaped {
		return nil, false
	}
	p.single = true
	part := []byte{}
	for _, r := range p.general {
		if r != anyRun {
			if r >= 0 {
				part = utf8.AppendRune(part, r)
			}
			continue
		}
		p.single = false

		p.parts = append(p.parts, part)
		part = []byte{}
	}
	p.parts = append(p.parts, part)
	return p, true
}

// Match reports whether the whole of s matches.
func (p *Pattern) Match(s []byte) bool {
	if p.hasGeneral {
		return p.matchGeneral(s)
	}
	if p.single {
		return bytes.Equal(s, p.parts[0])
	}
	head, tail := p.parts[0], p.parts[len(p.parts)-1]
	if len(s) < len(head)+len(tail) || !bytes.HasPrefix(s, head) || !bytes.HasSuffix(s, tail) {
		return false
	}
	s = s[len(head) : len(s)-len(tail)]
	for _, part := range p.parts[1 : len(p.parts)-1] {
		at := bytes.Index(s, part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return true
}

// matchGeneral walks both; on a mismatch it gives the last % one character more.
func (p *Pattern) matchGeneral(s []byte) bool {
	g := p.general
	i, j, star, mark := 0, 0, -1, 0
	for i < len(s) {
		r, w := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, w = utf8.DecodeRune(s[i:])
		}
		switch {
		case j < len(g) && g[j] == anyRun:
			star, mark = j, i
			j++
		case j < len(g) && (g[j] == anyChar || g[j] == r):
			i, j = i+w, j+1
		case star >= 0:
			_, w := utf8.DecodeRune(s[mark:])
			mark += w
			i, j = mark, star+1
		default:
			return false
		}
	}
	for j < len(g) && g[j] == anyRun {
		j++
	}
	return j == len(g)
}

// Like matches each text; the bits are set where it matches.
func Like(out []byte, t Texts, p *Pattern, n int) {
	if !p.hasGeneral && !p.single && len(p.parts) == 3 && len(p.parts[0]) == 0 && len(p.parts[2]) == 0 {
		contains(out, t, p.parts[1], n)
		return
	}
	m := t.Mask()
	if !p.hasGeneral && !p.single && len(p.parts) == 2 && len(p.parts[1]) == 0 {
		head := p.parts[0]
		for i := range n {
			if s := t.At(i & m); len(s) >= len(head) && string(s[:len(head)]) == string(head) {
				SetBit(out, i)
			}
		}
		return
	}
	for i := range n {
		if p.Match(t.At(i & m)) {
			SetBit(out, i)
		}
	}
}

// contains looks for a needle in the bytes of all texts at once, so that short texts cost no call each.
func contains(out []byte, t Texts, needle []byte, n int) {
	if len(needle) == 0 || t.Mask() == 0 {
		for i := range n {
			if bytes.Contains(t.At(i&t.Mask()), needle) {
				SetBit(out, i)
			}
		}
		return
	}
	row, at, end := 0, int(t.Offs[0]), int(t.Offs[n])
	for at < end {
		hit := bytes.Index(t.Data[at:end], needle)
		if hit < 0 {
			return
		}
		at += hit
		for int(t.Offs[row+1]) <= at {
			row++
		}
		if at+len(needle) <= int(t.Offs[row+1]) {
			SetBit(out, row)
			at = int(t.Offs[row+1]) // one hit is enough
		} else {
			at++
		}
	}
}
