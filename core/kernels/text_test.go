package kernels

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// likeModel is LIKE by its definition, without regard to time.
func likeModel(p, s string) bool {
	if p == "" {
		return s == ""
	}
	switch p[0] {
	case '%':
		for i := 0; i <= len(s); i++ {
			if likeModel(p[1:], s[i:]) {
				return true
			}
		}
		return false
	case '_':
		return s != "" && likeModel(p[1:], s[1:])
	}
	return s != "" && s[0] == p[0] && likeModel(p[1:], s[1:])
}

// words lists all words of up to n letters.
func words(letters string, n int) []string {
	out := []string{""}
	for from := 0; n > 0; n-- {
		end := len(out)
		for _, w := range out[from:end] {
			for _, l := range letters {
				out = append(out, w+string(l))
			}
		}
		from = end
	}
	return out
}

func TestLikeMatchesItsDefinition(t *testing.T) {
	texts := words("ab", 5)
	offs := []int32{0}
	var data []byte
	for _, s := range texts {
		data = append(data, s...)
		offs = append(offs, int32(len(data)))
	}
	for _, p := range words("ab%_", 5) {
		m, ok := CompileLike(p, 0)
		if !ok {
			t.Fatalf("%q does not compile", p)
		}
		out := make([]byte, BitBytes(len(texts)))
		Like(out, Texts{offs, data}, m, len(texts))
		for i, s := range texts {
			if want := likeModel(p, s); Bit(out, i) != want || m.Match([]byte(s)) != want {
				t.Fatalf("%q LIKE %q should be %v", s, p, want)
			}
		}
	}
}

// A pattern of many wildcards takes no time worth mentioning on a long text.
func TestLikeIsNotExponential(t *testing.T) {
	s := []byte(strings.Repeat("ab", 20_000))
	for _, p := range []string{"%_%_%_%_%_%_%_%_%_%_%_%_%_%_Z", "%a%b%a%b%a%b%a%b%a%b%a%b%Y"} {
		m, _ := CompileLike(p, 0)
		if m.Match(s) {
			t.Errorf("%s matches", p)
		}
	}
}

func TestSubstring(t *testing.T) {
	for _, c := range []struct {
		s           string
		start, size int64
		want        string
	}{
		{"hello", 2, 3, "ell"}, {"hello", -3, 2, "ll"}, {"hello", 0, 2, "h"}, {"hello", 2, math.MaxInt32, "ello"}, {"hello", 2, -1, "h"},
		{"hello", -10, 7, "he"}, {"hello", 9, 2, ""}, {"héllo", 2, 2, "él"}, {"héllo", -4, 1, "é"}, {"", 1, 1, ""}, {"日本語", 2, 5, "本語"},
	} {
		if got := string(Substring([]byte(c.s), c.start, c.size)); got != c.want {
			t.Errorf("substring(%q, %d, %d) = %q, want %q", c.s, c.start, c.size, got, c.want)
		}
	}
}

// TestWhole compares the kernels that work on a whole column with text by text.
func TestWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "b", "ab", "é", "", "aa"}
	for range 5000 {
		n := r.IntN(6)
		c := Texts{Offs: []int32{3}, Data: []byte("aab")}
		var parts []string
		for range n {
			s := ""
			for range r.IntN(5) {
				s += alphabet[r.IntN(len(alphabet)-r.IntN(2)*3)]
			}
			parts = append(parts, s)
			c.Data = append(c.Data, s...)
			c.Offs = append(c.Offs, int32(len(c.Data)))
		}
		c.Data = append(c.Data, "ab"...)
		lengths := make([]int64, n)
		Lengths(lengths, c)
		for _, from := range []string{"a", "ab", "aa", "é"} {
			offs, data := Replace(c, n, []byte(from), []byte("x"))
			for i, s := range parts {
				if got, want := string(data[offs[i]:offs[i+1]]), strings.ReplaceAll(s, from, "x"); got != want {
					t.Fatalf("replace %q in %q: %q, want %q", from, parts, got, want)
				}
				if lengths[i] != int64(utf8.RuneCountInString(s)) {
					t.Fatalf("length of %q: %d", s, lengths[i])
				}
			}
		}
	}
}
