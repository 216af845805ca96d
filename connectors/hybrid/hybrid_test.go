package hybrid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// archive is a history: rows of partition, offset, and what the record says.
type archive [][2]int64

var archiveFields = []types.Field{{Name: "v", Type: types.String}, {Name: "_partition", Type: types.Int32}, {Name: "_offset", Type: types.Int64}}

func said(partition, offset int64) string { return fmt.Sprintf("%d/%d", partition, offset) }

func (a archive) Fields() []types.Field { return archiveFields }
func (a archive) Stats() flow.Stats     { return flow.Stats{Rows: int64(len(a))} }

// Scan gives three rows at a time and leaves all filtering to the reader, as a relation may.
func (a archive) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return &archiveScan{a, req.Columns}, nil
}

type archiveScan struct {
	rows    archive
	columns []int
}

func (s *archiveScan) Next(context.Context, int) (*flow.Morsel, error) {
	n := min(3, len(s.rows))
	if n == 0 {
		return nil, nil
	}
	vals := make([][]types.Value, 3)
	for _, r := range s.rows[:n] {
		for c, v := range []types.Value{said(r[0], r[1]), r[0], r[1]} {
			vals[c] = append(vals[c], v)
		}
	}
	s.rows = s.rows[n:]
	var cols []arrow.Array
	var fields []types.Field
	for _, c := range s.columns {
		cols, fields = append(cols, types.ArrayOf(vals[c], archiveFields[c].Type)), append(fields, archiveFields[c])
	}
	return &flow.Morsel{Batch: array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(n))}, nil
}

func (s *archiveScan) Close() error { return nil }

// topic is a live part: each partition holds the offsets of a span.
type topic struct {
	spans   map[string][2]int64
	opened  *[]string
	bounded bool
}

func (p topic) Fields() []types.Field { return archiveFields[:1] }
func (p topic) Bounded() bool         { return p.bounded }
func (p topic) Updating() bool        { return false }
func (p topic) Replayable() bool      { return true }

func (p topic) Splits(context.Context) ([]flow.Split, error) {
	var out []flow.Split
	for id := range p.spans {
		out = append(out, flow.Split{ID: id})
	}
	slices.SortFunc(out, func(a, b flow.Split) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (p topic) PositionAt(offset int64) flow.Position {
	return flow.Position(strconv.FormatInt(offset, 10))
}

func (p topic) Held(context.Context) (map[string][2]int64, error) { return p.spans, nil }

func (p topic) UntilLatest(context.Context) (flow.Stream, error) {
	p.bounded = true
	return p, nil
}

func (p topic) Open(_ context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	*p.opened = append(*p.opened, split.ID+" from "+string(from))
	at, err := strconv.ParseInt(string(from), 10, 64)
	return &topicReader{p, split.ID, at}, err
}

type topicReader struct {
	p     topic
	split string
	at    int64
}

func (r *topicReader) Read(context.Context, int) (flow.Rows, error) {
	if r.at >= r.p.spans[r.split][1] {
		return flow.Rows{}, io.EOF
	}
	partition, _ := strconv.ParseInt(r.split, 10, 64)
	row := types.ArrayOf([]types.Value{said(partition, r.at)}, types.String)
	r.at++
	return flow.Rows{Batch: array.NewRecordBatch(types.ArrowSchema(archiveFields[:1]), []arrow.Array{row}, 1), Next: r.p.PositionAt(r.at)}, nil
}

func (r *topicReader) Close() error { return nil }

// parts opens the two.
type parts struct {
	archive
	topic
}

func (p parts) Part(text string) (connectors.Part, error) {
	return connectors.Part{Connector: text, Options: map[string]string{}}, nil
}

func (p parts) Relation(context.Context, string, connectors.Part) (flow.Relation, error) {
	return p.archive, nil
}

func (p parts) Stream(context.Context, string, connectors.Part) (flow.Stream, error) {
	return p.topic, nil
}

func openParts(t *testing.T, a archive, spans map[string][2]int64, offsets string) (flow.Stream, *[]string, error) {
	t.Helper()
	given := map[string]string{"history": "old", "live": "new"}
	if offsets != "" {
		given["offsets"] = offsets
	}
	set, err := Source.Options.Parse("connector 'hybrid'", given)
	if err != nil {
		t.Fatal(err)
	}
	opened := &[]string{}
	st, err := Source.Stream(t.Context(), connectors.OpenRequest{Name: "h", Settings: set, Schema: archiveFields[:1], Other: parts{a, topic{spans: spans, opened: opened}}})
	return st, opened, err
}

// readSplit reads a split to its end, and gives what each position was behind.
func readSplit(t *testing.T, st flow.Stream, split string, from flow.Position) (rows []string, positions []flow.Position, err error) {
	t.Helper()
	rd, err := st.Open(t.Context(), flow.Split{ID: split}, from)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = rd.Close() }()
	for {
		got, err := rd.Read(t.Context(), 100)
		if errors.Is(err, io.EOF) {
			return rows, positions, nil
		}
		if err != nil {
			return rows, positions, err
		}
		if got.Batch != nil {
			for r := range int(got.Batch.NumRows()) {
				rows = append(rows, got.Batch.Column(0).ValueStr(r))
			}
		}
		for len(positions) < len(rows) {
			positions = append(positions, "")
		}
		if len(rows) > 0 && got.Next != "" {
			positions[len(rows)-1] = got.Next
		}
	}
}

var (
	old  = archive{{0, 0}, {1, 0}, {0, 1}, {1, 2}, {0, 3}, {1, 3}, {0, 4}, {2, 0}} // offset 2 of partition 0 was a marker
	kept = map[string][2]int64{"0": {2, 8}, "1": {0, 6}, "2": {1, 1}, "3": {0, 2}} // they overlap, but in partition 2
)

// Each record comes once and in order, whatever both parts hold of it; and a restart at any position goes on behind it.
func TestSplice(t *testing.T) {
	for name, c := range map[string]struct {
		offsets string
		want    map[string]string
		live    []string
	}{
		"behind the history": {"", map[string]string{"0": "0/0 0/1 0/3 0/4 0/5 0/6 0/7", "1": "1/0 1/2 1/3 1/4 1/5", "2": "2/0", "3": "3/0 3/1"}, []string{"0 from 5", "1 from 4", "2 from 1", "3 from 0"}},
		"where it is told":   {"0:3,1:3", map[string]string{"0": "0/0 0/1 0/3 0/4 0/5 0/6 0/7", "1": "1/0 1/2 1/3 1/4 1/5", "2": "2/0", "3": "3/0 3/1"}, []string{"0 from 3", "1 from 3", "2 from 1", "3 from 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			st, opened, err := openParts(t, old, kept, c.offsets)
			if err != nil {
				t.Fatal(err)
			}
			all := map[string][]flow.Position{}
			for split, want := range c.want {
				rows, at, err := readSplit(t, st, split, "")
				if got := strings.Join(rows, " "); err != nil || got != want {
					t.Errorf("partition %s: %q, not %q: %v", split, got, want, err)
				}
				all[split] = at
			}
			slices.Sort(*opened)
			if !slices.Equal(*opened, c.live) {
				t.Errorf("live: %q, not %q", *opened, c.live)
			}
			// The history has grown meanwhile: the splice stays where it was.
			grown := append(slices.Clone(old), [2]int64{0, 5}, [2]int64{1, 4})
			if c.offsets == "" {
				st, _, err = openParts(t, grown, kept, "")
				if err != nil {
					t.Fatal(err)
				}
			}
			for split, want := range c.want {
				for i, at := range all[split] {
					if at == "" {
						continue
					}
					rows, _, err := readSplit(t, st, split, at)
					if got, rest := strings.Join(rows, " "), strings.Join(strings.Fields(want)[i+1:], " "); err != nil || got != rest {
						t.Errorf("partition %s from %q: %q, not %q: %v", split, at, got, rest, err)
					}
				}
			}
		})
	}
}

// What cannot be spliced exactly is refused.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		history archive
		spans   map[string][2]int64
		offsets string
		says    string
	}{
		"retention has passed the history": {old, map[string][2]int64{"0": {6, 8}, "1": {0, 6}, "2": {0, 1}}, "", "up to the offset 5, and the live part begins at 6"},
		"records before the history":       {archive{{1, 0}}, map[string][2]int64{"0": {1, 3}, "1": {0, 1}}, "", "up to the offset 0, and the live part begins at 1"},
		"another topic":                    {old, map[string][2]int64{"0": {0, 2}, "1": {0, 6}, "2": {0, 1}}, "", "the live part ends at 2"},
		"a partition that is gone":         {old, map[string][2]int64{"0": {0, 8}, "1": {0, 6}}, "", "has the partition 2, which the live part has not"},
		"a record twice":                   {append(slices.Clone(old), [2]int64{0, 1}), kept, "", "it has records twice"},
		"offsets behind the history":       {old, kept, "0:7", "up to the offset 5, and the live part begins at 7"},
		"offsets that are none":            {old, kept, "0=7", "are no offsets by partition"},
	} {
		st, _, err := openParts(t, c.history, c.spans, c.offsets)
		if err == nil {
			_, err = st.Splits(t.Context())
		}
		for split := range c.spans {
			if err == nil {
				_, err = st.Open(t.Context(), flow.Split{ID: split}, "")
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || errs.As(err).Kind == errs.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Retention that passes the cut while the history is read is noticed at the splice.
func TestRetentionMeanwhile(t *testing.T) {
	spans := map[string][2]int64{"0": {2, 8}, "1": {0, 6}, "2": {1, 1}}
	st, _, err := openParts(t, old, spans, "")
	if err != nil {
		t.Fatal(err)
	}
	rd, err := st.Open(t.Context(), flow.Split{ID: "0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	spans["0"] = [2]int64{7, 8}
	for err == nil {
		_, err = rd.Read(t.Context(), 100)
	}
	if !strings.Contains(err.Error(), "the records between are in neither") {
		t.Error(err)
	}
}

// A history that was cut at its end between two runs is refused where a split is still in it, and is not needed where a split is live.
func TestAHistoryThatIsShorterLater(t *testing.T) {
	short := old[:3] // partition 0 up to 1, partition 1 up to 0
	for _, offsets := range []string{"", "0:4"} {
		st, _, err := openParts(t, short, kept, offsets)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = readSplit(t, st, "0", "history 2 of 5")
		if err == nil || !strings.Contains(err.Error(), "up to the offset 2, and the live part begins at 5") {
			t.Errorf("offsets %q: in the history: %v", offsets, err)
		}
		rows, _, err := readSplit(t, st, "0", "live 6")
		if got := strings.Join(rows, " "); err != nil || got != "0/6 0/7" {
			t.Errorf("offsets %q: live: %q: %v", offsets, got, err)
		}
	}
}

// While the history is read nobody has said that there is nothing; behind it silence begins anew.
func TestAHistoryIsNotSilent(t *testing.T) {
	st, _, err := openParts(t, old, kept, "")
	if err != nil {
		t.Fatal(err)
	}
	c := clock.NewFake(time.Unix(1000, 0))
	st.(*stream).clock = c
	rd, err := st.Open(t.Context(), flow.Split{ID: "2"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rd.Close() }()
	if since, last := rd.(flow.Listener).Heard(); !since.IsZero() || !last.IsZero() {
		t.Errorf("in the history it answered from %s to %s", since, last)
	}
	for err == nil {
		_, err = rd.Read(t.Context(), 100)
	}
	c.Advance(time.Second)
	if since, last := rd.(flow.Listener).Heard(); since != time.Unix(1000, 0) || last != time.Unix(1001, 0) {
		t.Errorf("live it answered from %s to %s", since, last)
	}
}
