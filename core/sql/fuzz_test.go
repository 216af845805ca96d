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
	f.Fuzz(func(t *testing.T, text string) { checkAnyText(t, text) })
}

// TestMutatedFixtures replaces, drops, doubles and swaps tokens of the
// fixtures. RIVERBED_FUZZ_N sets how many texts are tried, RIVERBED_FUZZ_SEED
// the seed; the same two give the same texts.
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
