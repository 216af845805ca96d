package sql

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// checkAnyText holds for every text: parsing fails with an error of ours that
// has a place, or the statements survive printing.
func checkAnyText(t testing.TB, text string) (parsed bool) {
	t.Helper()
	list, err := Parse(text)
	if err != nil {
		if e := errs.As(err); e.Kind != errs.Schema || !e.Pos.Valid() || e.Pos.Offset > len(text) {
			t.Fatalf("not a syntax error with a place: %#v", e)
		}
		return false
	}
	for _, s := range list {
		roundTrip(t, s)
	}
	return len(list) > 0
}

func FuzzParse(f *testing.F) {
	for _, fix := range fixtures(f) {
		f.Add(fix.text)
	}
	for _, c := range errorCases {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkAnyText(t, text) })
}

// TestMutatedFixtures replaces, drops, doubles and swaps tokens of the
// fixtures. RIVERBED_FUZZ_N sets how many texts are tried, RIVERBED_FUZZ_SEED
// the seed; the same two give the same texts. A long run has N = 1000000.
func TestMutatedFixtures(t *testing.T) {
	n := envInt(t, "RIVERBED_FUZZ_N", 5000)
	seed := envInt(t, "RIVERBED_FUZZ_SEED", 1)
	var pool []string // every token of every fixture, as text
	var texts [][]string
	for _, f := range fixtures(t) {
		if len(f.text) > 2000 {
			continue
		}
		list, err := Parse(f.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			tokens := tokenTexts(Print(s))
			texts = append(texts, tokens)
			pool = append(pool, tokens...)
		}
	}
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))
	parsed := 0
	for i := range n {
		tokens := append([]string(nil), texts[rnd.IntN(len(texts))]...)
		for range 1 + rnd.IntN(3) {
			mutate(rnd, &tokens, pool)
		}
		text := strings.Join(tokens, " ")
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d, case %d: %s", seed, i, text)
				}
			}()
			if checkAnyText(t, text) {
				parsed++
			}
		}()
	}
	t.Logf("%d of %d texts parsed", parsed, n)
	if parsed == 0 || parsed == n {
		t.Error("the mutations are too strong or too weak to test anything")
	}
}

// templates grow random expressions: X is an expression already made.
var templates = strings.Split(strings.TrimSpace(`
X + X¦X - X¦X * X¦X / X¦X % X¦X ^ X¦X || X¦X & X¦X << X¦X = X¦X <> X¦X < X¦X AND X¦X OR X¦X -> X¦X ->> X¦X ~ X¦X ~~ X¦X !~~* X
X IS DISTINCT FROM X¦X IS NULL¦X ISNULL¦X IS NOT TRUE¦X LIKE X¦X NOT ILIKE X ESCAPE X¦X GLOB X¦X SIMILAR TO X
X BETWEEN X AND X¦X NOT BETWEEN SYMMETRIC X AND X¦X IN (X, X)¦X NOT IN (SELECT X)¦X IN X¦X = ANY (X)¦X < ALL (SELECT X)
NOT X¦- X¦+ X¦~ X¦@ X¦(X)¦(X, X)¦ROW(X)¦X::INT¦X::DECIMAL(4, 1)[]¦X[X]¦X[X:X]¦X[:X:X]¦X.f¦X.f(X)¦X COLLATE c¦X AT TIME ZONE X
CASE X WHEN X THEN X ELSE X END¦CASE WHEN X THEN X END¦CAST(X AS VARCHAR)¦TRY_CAST(X AS DATE)¦EXTRACT(day FROM X)¦[X, X]¦[X FOR a IN X IF X]
{'a': X, b: X}¦MAP {X: X}¦f(X, a := X)¦f(a -> X, lambda b, c: X)¦f((a, b) -> X)¦f(DISTINCT X ORDER BY X DESC) FILTER (X)¦f(*)¦trim(LEADING X FROM X)
f(X IGNORE NULLS) OVER (PARTITION BY X ORDER BY X ROWS BETWEEN X PRECEDING AND X FOLLOWING)¦f() OVER w¦f(X) WITHIN GROUP (ORDER BY X)
position(X IN X)¦substring(X FROM X FOR X)¦overlay(X PLACING X FROM X)¦(SELECT X)¦ARRAY(SELECT X)¦EXISTS (SELECT X FROM t WHERE X)
INTERVAL (X) DAY¦(SELECT X GROUP BY X, (X, X), ROLLUP (X) HAVING X QUALIFY X ORDER BY X LIMIT X OFFSET X)¦(VALUES (X, X) UNION ALL SELECT X, X)
(FROM t AS a JOIN f(X) ON X, LATERAL (SELECT X) SELECT X AS b, * REPLACE (X AS a))¦COLUMNS(X)¦((SELECT X) UNION (SELECT X))`), "\n")

var leaves = strings.Split(`a|b.c|t.*|1|2.5|1e3|.5|'s'|NULL|true|x'00'|$1|?|$n|DATE '2024-01-01'|INTERVAL '1 day'|INTERVAL '5' SECOND|INTERVAL 5 HOUR|current_date|
"left"|"a b"|"not"|[]|{}|MAP {}|f()|values|filter|over|interval|row|map|unbounded|current|"interval"(1)|"trim"(a)|"rollup"(a)|"Date" 'x'|"INTERVAL" 'x'`, "|")

// TestRandomExpressions puts operators beside one another without parentheses,
// so that the binding powers of parser and printer are held against each other.
func TestRandomExpressions(t *testing.T) {
	n := envInt(t, "RIVERBED_FUZZ_N", 5000)
	seed := envInt(t, "RIVERBED_FUZZ_SEED", 1)
	rnd := rand.New(rand.NewPCG(uint64(seed), 1))
	var forms []string
	for _, line := range templates {
		forms = append(forms, strings.Split(line, "¦")...)
	}
	parsed := 0
	for i := range n {
		parts := []string{strings.TrimSpace(leaves[rnd.IntN(len(leaves))])}
		for range 1 + rnd.IntN(6) {
			var b strings.Builder
			for j, piece := range strings.Split(forms[rnd.IntN(len(forms))], "X") {
				if j > 0 {
					if rnd.IntN(2) == 0 {
						b.WriteString(parts[rnd.IntN(len(parts))])
					} else {
						b.WriteString(strings.TrimSpace(leaves[rnd.IntN(len(leaves))]))
					}
				}
				b.WriteString(piece)
			}
			if b.Len() < 2000 {
				parts = append(parts, b.String())
			}
		}
		text := "SELECT " + parts[len(parts)-1]
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d, case %d: %s", seed, i, text)
				}
			}()
			if checkAnyText(t, text) {
				parsed++
			}
		}()
	}
	t.Logf("%d of %d texts parsed", parsed, n)
	if parsed < n/4 {
		t.Error("too few of the random expressions parse to test anything")
	}
}

func envInt(t *testing.T, name string, fallback int) int {
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}

// tokenTexts cuts a text that parses into the texts of its tokens.
func tokenTexts(text string) []string {
	tokens := lex(text)
	var list []string
	for i := range len(tokens) - 1 {
		list = append(list, strings.TrimSpace(text[tokens[i].pos.Offset:tokens[i+1].pos.Offset]))
	}
	return list
}

func mutate(rnd *rand.Rand, tokens *[]string, pool []string) {
	list := *tokens
	if len(list) == 0 {
		return
	}
	i, j := rnd.IntN(len(list)), rnd.IntN(len(list))
	switch rnd.IntN(5) {
	case 0:
		list[i] = pool[rnd.IntN(len(pool))]
	case 1:
		*tokens = append(list[:i], list[i+1:]...)
	case 2:
		*tokens = append(list[:i:i], append([]string{pool[rnd.IntN(len(pool))]}, list[i:]...)...)
	case 3:
		list[i], list[j] = list[j], list[i]
	case 4: // copy a run of tokens to another place
		run := append([]string(nil), list[i:min(len(list), i+1+rnd.IntN(6))]...)
		*tokens = append(list[:j:j], append(run, list[j:]...)...)
	}
}
