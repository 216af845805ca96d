package sql

import (
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/riverbed/riverbed/core/errs"
)

// symbols are tried longest first. A fixed list, not "as many operator
// characters as there are", so that `a=-1` and `x*-y` need no spaces.
var symbols = [][]string{
	{"!~~*"},
	{"->>", "~~*", "~~~", "!~~", "!~*", "<->", "<=>"},
	{"::", ":=", "=>", "->", "||", "**", "//", "==", "<>", "!=", "<=", ">=", "<<", ">>", "~~", "~*", "!~", "&&", "^@", "@>", "<@"},
	{"+", "-", "*", "/", "%", "^", "=", "<", ">", "~", "&", "|", "@", "(", ")", "[", "]", "{", "}", ",", ";", ".", ":", "?", "$"},
}

type lexer struct {
	text string
	off  int
	// The place of the last token: offsets only grow, so lines and characters are counted once.
	at errs.Pos
}

// lex cuts text into tokens, the last of which is the end.
func lex(text string) []token {
	l := &lexer{text: text, at: errs.Pos{Line: 1, Col: 1}}
	if !utf8.ValidString(text) {
		l.fail(l.pos(validPrefix(text)), "the text is not valid UTF-8")
	}
	tokens := make([]token, 0, len(text)/5+4)
	for {
		l.skipSpace()
		t := l.next()
		tokens = append(tokens, t)
		if t.kind == tokEnd {
			return tokens
		}
	}
}

// validPrefix is the length of the valid UTF-8 that text starts with.
func validPrefix(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return len(text)
}

// pos turns a byte offset, not before the last one asked for, into a place.
func (l *lexer) pos(off int) errs.Pos {
	for _, r := range l.text[l.at.Offset:off] {
		if r == '\n' {
			l.at.Line++
			l.at.Col = 1
		} else {
			l.at.Col++
		}
	}
	l.at.Offset = off
	return l.at
}

// AIDEV-NOTE: the lexer and the parser leave by panicking with an *errs.Error; guard in parser.go turns it into a result.
func (l *lexer) fail(pos errs.Pos, format string, args ...any) { l.failHint(pos, "", format, args...) }

func (l *lexer) failHint(pos errs.Pos, hint, format string, args ...any) {
	panic(errs.E(errs.Schema, "parse", pos, format, args...).WithHint("%s", hint))
}

func (l *lexer) rest() string { return l.text[l.off:] }

// byteAt is the byte i after the current one, or 0.
func (l *lexer) byteAt(i int) byte {
	if l.off+i < len(l.text) {
		return l.text[l.off+i]
	}
	return 0
}

func (l *lexer) skipSpace() {
	for l.off < len(l.text) {
		switch rest := l.rest(); {
		case strings.HasPrefix(rest, "--"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				l.off += end + 1
			} else {
				l.off = len(l.text)
			}
		case strings.HasPrefix(rest, "/*"):
			l.skipBlockComment()
		default:
			r, size := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return
			}
			l.off += size
		}
	}
}

// skipBlockComment skips /* … */, which nests.
func (l *lexer) skipBlockComment() {
	start := l.pos(l.off)
	depth := 0
	for l.off < len(l.text) {
		switch {
		case l.byteAt(0) == '/' && l.byteAt(1) == '*':
			depth++
			l.off += 2
		case l.byteAt(0) == '*' && l.byteAt(1) == '/':
			depth--
			l.off += 2
			if depth == 0 {
				return
			}
		default:
			l.off++
		}
	}
	l.failHint(start, "close it with */; comments nest", "a comment is not closed")
}

func (l *lexer) next() token {
	t := token{pos: l.pos(l.off)}
	if l.off == len(l.text) {
		return t
	}
	c := l.byteAt(0)
	switch {
	case c == '\'':
		t.kind, t.text = tokString, l.quoted('\'', t.pos)
	case c == '"':
		t.kind, t.text = tokQuoted, l.quoted('"', t.pos)
		if t.text == "" {
			l.fail(t.pos, "a quoted name is empty")
		}
	case (c == 'e' || c == 'E') && l.byteAt(1) == '\'':
		t.kind, t.text = tokString, l.escaped(t.pos)
	case (c == 'x' || c == 'X') && l.byteAt(1) == '\'':
		l.off++
		digits := l.quoted('\'', t.pos)
		bytes, err := hex.DecodeString(digits)
		if err != nil {
			l.failHint(t.pos, "write two hexadecimal digits a byte: x'00ff'", "bad blob literal x'%s'", shorten(digits))
		}
		t.kind, t.text = tokBlob, string(bytes)
	case c == '$':
		return l.dollar(t)
	case isDigit(c) || c == '.' && isDigit(l.byteAt(1)):
		return l.number(t)
	default:
		if end := l.wordEnd(l.off); end > l.off {
			t.kind, t.text = tokWord, l.text[l.off:end]
			t.key = keyOf(t.text)
			l.off = end
			return t
		}
		return l.symbol(t)
	}
	return t
}

// keyOf is a word in capitals; keywords are ASCII, so other words have none
// (in Unicode ſ is a small S, and ſelect is a name all the same).
func keyOf(word string) string {
	for i := 0; i < len(word); i++ {
		if word[i] >= utf8.RuneSelf {
			return ""
		}
	}
	return strings.ToUpper(word)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// wordEnd is where the word that starts at off ends; off itself when none starts there.
func (l *lexer) wordEnd(off int) int {
	start := off
	for off < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[off:])
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' ||
			r >= utf8.RuneSelf && !unicode.IsSpace(r) && !strings.ContainsRune("‘’“”\ufeff", r)
		if !letter && (off == start || r != '$' && !('0' <= r && r <= '9')) {
			break
		}
		off += size
	}
	return off
}

// quoted reads what stands in quotes; a doubled quote stands for one.
func (l *lexer) quoted(quote byte, start errs.Pos) string {
	l.off++
	var b strings.Builder
	for {
		end := strings.IndexByte(l.rest(), quote)
		if end < 0 {
			what := "a string"
			if quote == '"' {
				what = "a quoted name"
			}
			l.failHint(start, "close it with "+string(quote)+"; inside, write it twice", "%s is not closed", what)
		}
		b.WriteString(l.text[l.off : l.off+end])
		l.off += end + 1
		if l.byteAt(0) != quote {
			return b.String()
		}
		b.WriteByte(quote)
		l.off++
	}
}

var simpleEscapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads E'…' with its backslash escapes.
func (l *lexer) escaped(start errs.Pos) string {
	l.off += 2
	var b strings.Builder
	for {
		c := l.byteAt(0)
		switch {
		case l.off >= len(l.text) || c == '\\' && l.off+1 == len(l.text):
			l.failHint(start, "close it with '", "a string is not closed")
		case c == '\'' && l.byteAt(1) == '\'':
			b.WriteByte('\'')
			l.off += 2
		case c == '\'':
			l.off++
			if !utf8.ValidString(b.String()) {
				l.fail(start, "the escapes of a string give bytes that are not valid UTF-8")
			}
			return b.String()
		case c == '\\':
			l.off++
			l.escape(&b)
		default:
			b.WriteByte(c)
			l.off++
		}
	}
}

// escape reads one escape, after its backslash.
func (l *lexer) escape(b *strings.Builder) {
	c := l.byteAt(0)
	numeric := func(skip, digits, base int) bool {
		end := l.off + skip + digits
		if end > len(l.text) {
			return false
		}
		n, err := strconv.ParseUint(l.text[l.off+skip:end], base, 32)
		if err != nil {
			return false
		}
		if digits > 3 {
			if n > unicode.MaxRune {
				return false
			}
			b.WriteRune(rune(n))
		} else {
			b.WriteByte(byte(n))
		}
		l.off = end
		return true
	}
	var ok bool
	switch {
	case c == 'x':
		ok = numeric(1, 2, 16) || numeric(1, 1, 16)
	case c == 'u':
		ok = numeric(1, 4, 16)
	case c == 'U':
		ok = numeric(1, 8, 16)
	case '0' <= c && c <= '7':
		ok = numeric(0, 3, 8) || numeric(0, 2, 8) || numeric(0, 1, 8)
	default:
		if s, found := simpleEscapes[c]; found {
			c = s
		}
		b.WriteByte(c) // any other character stands for itself
		l.off++
		return
	}
	if !ok {
		l.fail(l.pos(l.off), `bad escape \%c in a string`, c)
	}
}

// dollar reads $1, $name, $$text$$ and $tag$text$tag$.
func (l *lexer) dollar(t token) token {
	start := l.off + 1
	end := start
	for end < len(l.text) && isDigit(l.text[end]) {
		end++
	}
	if end == start {
		end = start + len(tagOf(l.text[start:l.wordEnd(start)]))
	}
	if end < len(l.text) && l.text[end] == '$' && (end == start || !isDigit(l.text[start])) {
		tag := l.text[l.off : end+1]
		body := l.text[end+1:]
		n := strings.Index(body, tag)
		if n < 0 {
			l.failHint(t.pos, "close it with "+tag, "a string is not closed")
		}
		t.kind, t.text = tokString, body[:n]
		l.off = end + 1 + n + len(tag)
		return t
	}
	if end == start {
		return l.symbol(t)
	}
	t.kind, t.text = tokParam, l.text[start:end]
	l.off = end
	return t
}

// tagOf cuts a word at its first dollar sign.
func tagOf(word string) string {
	tag, _, _ := strings.Cut(word, "$")
	return tag
}

func (l *lexer) number(t token) token {
	if l.byteAt(0) == '0' {
		if base := map[byte]int{'x': 16, 'X': 16, 'b': 2, 'B': 2, 'o': 8, 'O': 8}[l.byteAt(1)]; base != 0 {
			end := l.wordEnd(l.off + 1)
			n, ok := new(big.Int).SetString(strings.ReplaceAll(l.text[l.off+2:end], "_", ""), base)
			if !ok || n.Sign() < 0 {
				l.fail(t.pos, "bad number %s", shorten(l.text[l.off:end]))
			}
			t.kind, t.text = tokInt, n.String()
			l.off = end
			return t
		}
	}
	start := l.off
	t.kind = tokInt
	l.digits()
	if l.byteAt(0) == '.' {
		t.kind = tokDecimal
		l.off++
		l.digits()
	}
	if c := l.byteAt(0); c == 'e' || c == 'E' {
		sign := 1
		if s := l.byteAt(1); s == '+' || s == '-' {
			sign = 2
		}
		if isDigit(l.byteAt(sign)) {
			t.kind = tokDouble
			l.off += sign
			l.digits()
		}
	}
	if end := l.wordEnd(l.off); end > l.off {
		l.failHint(t.pos, "put a space after the number", "letters follow a number: %s", shorten(l.text[start:end]))
	}
	t.text = strings.ReplaceAll(l.text[start:l.off], "_", "")
	return t
}

// digits skips digits; a single underscore may stand between two of them.
func (l *lexer) digits() {
	for isDigit(l.byteAt(0)) || l.byteAt(0) == '_' && l.off > 0 && isDigit(l.text[l.off-1]) && isDigit(l.byteAt(1)) {
		l.off++
	}
}

func (l *lexer) symbol(t token) token {
	for i, group := range symbols {
		n := len(symbols) - i
		if len(l.rest()) < n {
			continue
		}
		for _, s := range group {
			if l.text[l.off:l.off+n] == s {
				t.kind, t.key, t.text = tokSymbol, s, s
				l.off += n
				return t
			}
		}
	}
	r, _ := utf8.DecodeRuneInString(l.rest())
	hint := ""
	switch r {
	case '`':
		hint = `names are quoted with double quotes: "name"`
	case '‘', '’':
		hint = "use straight quotes for strings: 'text'"
	case '“', '”':
		hint = `use straight quotes for names: "name"`
	case '!':
		hint = "write NOT or <>"
	case '#':
		hint = "a comment starts with --"
	}
	l.failHint(t.pos, hint, "unexpected character '%c'", r)
	return t
}
