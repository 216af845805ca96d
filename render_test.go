package riverbed

import (
	"fmt"
	"strings"
	"testing"
)

func TestRenderShowsTheFirstAndTheLastRows(t *testing.T) {
	d := openDB(t)
	for _, n := range []int{0, 1, 3, 4, 5, 6, 100_000} {
		out, err := d.query(fmt.Sprintf("SELECT i AS a, 'x' || i AS b FROM range(%d) r(i)", n)).Render(t.Context(), RenderOptions{MaxRows: 5})
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, line := range strings.Split(out, "\n") {
			if f := strings.Fields(strings.ReplaceAll(line, "│", " ")); len(f) == 2 && (strings.HasPrefix(f[1], "x") || f[1] == "·") {
				shown = append(shown, strings.TrimPrefix(f[1], "x"))
			}
		}
		want := []string{}
		for i := range min(n, 5) {
			want = append(want, fmt.Sprint(i))
		}
		if n > 5 {
			want = []string{"0", "1", "2", "·", fmt.Sprint(n - 2), fmt.Sprint(n - 1)}
		}
		if strings.Join(shown, " ") != strings.Join(want, " ") || !strings.Contains(out, fmt.Sprintf("%d row", n)) {
			t.Errorf("%d rows: %v, want %v\n%s", n, shown, want, out)
		}
	}
	html, err := d.query("SELECT '<b>' AS x").Render(t.Context(), RenderOptions{HTML: true})
	if err != nil || !strings.Contains(html, "&lt;b&gt;") {
		t.Errorf("%v\n%s", err, html)
	}
}
