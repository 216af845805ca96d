package fn

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/text/unicode/norm"

	"github.com/riverbed/riverbed/core/types"
)

// textForms is likeness of texts and normal forms.
var textForms = []*Scalar{
	{Name: "damerau_levenshtein", Category: Text, Summary: "levenshtein, where swapping two neighbours counts once.",
		Overloads: textPair(types.Int64, damerauLevenshtein), Examples: []Example{ex("damerau_levenshtein('ab', 'ba')", "1")}},
	{Name: "jaccard", Category: Text, Summary: "How like the sets of bytes of two texts are, from 0 to 1.", Overloads: []Overload{fallible(Types{str, str}, types.Float64, func(c *Call) (arrow.Array, error) {
		a, b := textCol(c, 0), textCol(c, 1)
		return fixed(c, func(i int) float64 {
			x, y := a.at(i), b.at(i)
			if len(x) == 0 || len(y) == 0 {
				c.failf(i, "jaccard() of an empty text")
				return 0
			}
			var in [256]byte
			for _, ch := range x {
				in[ch] |= 1
			}
			for _, ch := range y {
				in[ch] |= 2
			}
			var n [4]float64
			for _, s := range in {
				n[s]++
			}
			return n[3] / (n[1] + n[2] + n[3])
		})
	})}, Examples: []Example{ex("jaccard('abc', 'abd')", "0.5")}},
	textFn("strip_accents", "A text without the accents of its letters.", func(dst, s []byte) []byte {
		for _, r := range string(norm.NFD.Bytes(s)) {
			if !unicode.Is(unicode.Mn, r) {
				dst = utf8.AppendRune(dst, r)
			}
		}
		return dst
	}, ex("strip_accents('café')", "cafe")),
	textFn("nfc_normalize", "A text in Unicode's normal form C: letters and their accents are one character where there is one.", func(dst, s []byte) []byte {
		return norm.NFC.Append(dst, s...)
	}, ex("length(nfc_normalize('e' || chr(769)))", "1")),
	likeEscape("like_escape", false, false), likeEscape("not_like_escape", true, false), likeEscape("ilike_escape", false, true), likeEscape("not_ilike_escape", true, true),
}

// likeEscape is LIKE … ESCAPE as a function.
func likeEscape(name string, negate, fold bool) *Scalar {
	word := strings.ToUpper(strings.ReplaceAll(strings.TrimSuffix(name, "_escape"), "_", " "))
	return &Scalar{Name: name, Category: Text, Summary: word + " with an escape character, as a function.", Examples: []Example{ex(name+"('a%', 'a!%', '!')", types.Format(!negate, types.Bool))},
		Overloads: []Overload{fallible(Types{str, str, str}, types.Bool, func(c *Call) (arrow.Array, error) { return likeKernel(c, negate, fold) })}}
}

// damerauLevenshtein counts the edits; a pair that was swapped may be edited further.
func damerauLevenshtein(a, b []byte) int64 {
	x, y := []rune(string(a)), []rune(string(b))
	n, m := len(x), len(y)
	most := n + m
	d := make([][]int, n+2)
	for i := range d {
		d[i] = make([]int, m+2)
	}
	d[0][0] = most
	for i := 0; i <= n; i++ {
		d[i+1][0], d[i+1][1] = most, i
	}
	for j := 0; j <= m; j++ {
		d[0][j+1], d[1][j+1] = most, j
	}
	seen := map[rune]int{} // by character: the last row it stood in
	for i := 1; i <= n; i++ {
		match := 0 // the last column of this row that matched
		for j := 1; j <= m; j++ {
			k, l, cost := seen[y[j-1]], match, 1
			if x[i-1] == y[j-1] {
				cost, match = 0, j
			}
			d[i+1][j+1] = min(d[i][j]+cost, d[i+1][j]+1, d[i][j+1]+1, d[k][l]+(i-k-1)+1+(j-l-1))
		}
		seen[x[i-1]] = i
	}
	return int64(d[n+1][m+1])
}
