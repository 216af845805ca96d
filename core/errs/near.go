package errs

import "strings"

// Near returns the candidate closest to name, or "" when none is close enough to be worth suggesting.
// Comparison ignores case; the distance is Damerau-Levenshtein with adjacent transpositions.
func Near(name string, candidates []string) string {
	best, bestDist := "", len(name)/3+2
	lower := strings.ToLower(name)
	for _, c := range candidates {
		if d := distance(lower, strings.ToLower(c)); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// DidYouMean returns `did you mean "x"?` or "".
func DidYouMean(name string, candidates []string) string {
	if n := Near(name, candidates); n != "" {
		return `did you mean "` + n + `"?`
	}
	return ""
}

func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	prev2, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(y)]
}
