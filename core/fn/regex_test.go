package fn

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
)

// TestRegex compares the narrowed search with Go's plain one, over texts in which the needed part stands everywhere.
func TestRegex(t *testing.T) {
	patterns := []string{`ab`, `(&|^)ab=`, `(&|^)ab=([^&]*)`, `^ab`, `ab$`, `x?ab`, `(?i)ab`, `[é&]ab`, `.ab`, `..ab.`, `\bab`, `(?m)^ab`, `x*ab`, `a+ab`,
		`(a|b)ab(b|&)`, `ab|ba`, `(ab)?x`, `(x|^)(ab)+`, `é{1,2}ab`, `\Aab\z`, `(^ab|&ab)`, `a.*ab`, `(?s)&.ab`, `(?:)`, `&ab\b`,
		`^ab?x`, `^a*b`, `^(a*)(b+)$`, `^[^b]+(?:b&)?([^x]+)x.*$`, `^(?:ab)?(a?)[^&]*&.*`, `^a?b?x?$`, `^([^=]*)=([ab]?)(.*)$`, `(?s)^a(.*)$`, `^.*ab`, `^a+b?`, `^[a-é]+x`, `^a*?b`,
		`^(?:a(?:b)?)?x`, `^[^a]b`, `^(a|b)x`, `^((a+)b)(x*)`, `^x*[^x]+$`}
	r := rand.New(rand.NewPCG(7, 7))
	alphabet := []string{"a", "b", "&", "=", "x", "é", "\n", "ab"}
	for _, p := range patterns {
		fast, err := newRegex(p)
		if err != nil {
			t.Fatal(err)
		}
		plain := regexp.MustCompile(p)
		for range 3000 {
			s := ""
			for range r.IntN(9) {
				s += alphabet[r.IntN(len(alphabet))]
			}
			want := plain.FindStringSubmatchIndex(s)
			if got := fast.find([]byte(s), nil); !slices.Equal(got, want) {
				t.Fatalf("%q in %q: %v, want %v", p, s, got, want)
			}
			if got := fast.matches([]byte(s)); got != (want != nil) {
				t.Fatalf("%q in %q: %v", p, s, got)
			}
			if got := fast.match([]byte(s)); string(got) != plain.FindString(s) {
				t.Fatalf("%q in %q: %q", p, s, got)
			}
		}
	}
}

// Which patterns are walked through, and which are left to the automaton.
func TestSteps(t *testing.T) {
	for pattern, want := range map[string]bool{
		`^https?://(?:www\.)?([^/]+)/.*$`: true,
		`^(a*)(b+)$`:                      true,
		`^[^=]*=(\d+)`:                    true,
		`^a.*b`:                           false, // the run would have to give back
		`^.*$`:                            true,
		`^x(é?)`:                          true,
		`^x(?:(é)=)?`:                     false, // a group in it, or not
		`^[a-é]+`:                         false, // some characters of several bytes, not all
		`^[^/]/`:                          false, // a single character may be of several bytes
		`a*b`:                             false,
		`(?m)^a*b`:                        false,
		`^(?i)ab*`:                        false,
		`^a*?b`:                           false,
		`^a|b`:                            false,
		`^a?b?c?d?e`:                      false,
	} {
		r, err := newRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if (r.steps != nil) != want {
			t.Errorf("%q is walked through: %t", pattern, !want)
		}
	}
}
