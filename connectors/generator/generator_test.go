package generator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

func TestConformance(t *testing.T) {
	for _, k := range kindNames() {
		t.Run(k, func(t *testing.T) {
			ct.Stream(t, ct.StreamConfig{Limit: 30, Open: func(t testing.TB) flow.Stream {
				return ct.OpenStream(t, Source, map[string]string{"kind": k, "rows": "100"})
			}})
		})
	}
}

// The same options give the same rows as a table and as a stream, whatever the batches.
func TestTableEqualsStream(t *testing.T) {
	for _, k := range kindNames() {
		rel := ct.OpenRelation(t, Source, map[string]string{"kind": k, "rows": "1000"})
		table := ct.Scan(t, rel, flow.ScanRequest{BatchRows: 64})
		s := ct.OpenStream(t, Source, map[string]string{"kind": k, "rows": "1000", "batch_rows": "37"})
		rows, _ := ct.Flat(ct.Drain(t, s, flow.Split{ID: "0"}, "", 1000, 1))
		if strings.Join(table, "\n") != strings.Join(rows, "\n") {
			t.Errorf("%s: table and stream differ", k)
		}
		other := ct.Scan(t, ct.OpenRelation(t, Source, map[string]string{"kind": k, "rows": "1000", "seed": "2"}), flow.ScanRequest{})
		if strings.Join(table, "\n") == strings.Join(other, "\n") {
			t.Errorf("%s: another seed gives the same rows", k)
		}
	}
}

func TestColumns(t *testing.T) {
	for k, want := range map[string]string{
		"nexmark_bid":     "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, dateTime TIMESTAMP_MS, extra VARCHAR",
		"nexmark_person":  "id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, dateTime TIMESTAMP_MS, extra VARCHAR",
		"nexmark_auction": "id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP_MS, expires TIMESTAMP_MS, seller BIGINT, category BIGINT, extra VARCHAR",
		"sky_alerts":      "alert_id BIGINT, object_id VARCHAR, ra DOUBLE, dec DOUBLE, mag DOUBLE, mag_err DOUBLE, filter VARCHAR, ts TIMESTAMP, score DOUBLE, night BIGINT",
	} {
		if got := ct.Columns(ct.OpenRelation(t, Source, map[string]string{"kind": k, "rows": "1"}).Fields()); got != want {
			t.Errorf("%s: %s", k, got)
		}
	}
}

// NEXMark's shape: ids, times and the shares of hot keys follow the generator that all peers use.
func TestNexmarkShape(t *testing.T) {
	rel := ct.OpenRelation(t, Source, map[string]string{"kind": "nexmark_bid", "rows": "46000"})
	rows := ct.Scan(t, rel, flow.ScanRequest{Columns: []int{0, 1, 2, 5}})
	hotAuction, hotBidder := 0, 0
	for i, row := range rows {
		var auction, bidder, price int64
		fmt.Sscanf(strings.ReplaceAll(row, "|", " "), "%d %d %d", &auction, &bidder, &price)
		epoch := int64(i) / 46
		if last := epoch*3 + 2 + 1000; auction > last || auction < last-200 && auction != (epoch*3+2)/100*100+1000 {
			t.Fatalf("bid %d is for auction %d", i, auction)
		}
		if auction%100 == 0 {
			hotAuction++
		}
		if bidder == epoch/100*100+1001 {
			hotBidder++
		}
		if price < 100 || price > 100_000_000 {
			t.Fatalf("price %d", price)
		}
	}
	if hotAuction < 22000 || hotAuction > 24500 || hotBidder < 34000 || hotBidder > 36000 {
		t.Errorf("hot auctions %d, hot bidders %d of 46000", hotAuction, hotBidder)
	}
	if !strings.HasSuffix(rows[0], "2020-01-01T00:00:00") || !strings.HasSuffix(rows[46], "2020-01-01T00:00:00.005") {
		t.Errorf("times: %s, %s", rows[0], rows[46])
	}
}

func TestAlertsAreOutOfOrderAndHaveNulls(t *testing.T) {
	rel := ct.OpenRelation(t, Source, map[string]string{"kind": "sky_alerts", "rows": "10000"})
	ts := ct.Scan(t, rel, flow.ScanRequest{Columns: []int{7}})
	back, nulls := 0, 0
	for i := 1; i < len(ts); i++ {
		if ts[i] < ts[i-1] {
			back++
		}
	}
	for _, s := range ct.Scan(t, rel, flow.ScanRequest{Columns: []int{8}}) {
		if s == "NULL" {
			nulls++
		}
	}
	if back < 500 || back > 2000 || nulls < 100 || nulls > 400 {
		t.Errorf("%d steps back, %d NULLs", back, nulls)
	}
}

func TestRate(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	s, err := Source.Stream(t.Context(), connectors.OpenRequest{Clock: fake, Settings: ct.Parse(t, Source.Options, map[string]string{"kind": "sky_alerts", "rate": "100"})})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := s.Open(t.Context(), flow.Split{}, "")
	fake.Advance(500 * time.Millisecond)
	rows, err := r.Read(t.Context(), 1000)
	if err != nil || rows.Batch.NumRows() != 50 || rows.Next != "50" {
		t.Errorf("after half a second: %v, %v", rows, err)
	}
}

func TestEndlessTable(t *testing.T) {
	if _, err := ct.TryRelation(Source, map[string]string{"kind": "sky_alerts"}); !errs.Is(err, errs.Usage) {
		t.Errorf("got %v", err)
	}
	if _, err := ct.TryRelation(Source, map[string]string{"kind": "sky_alert"}); err == nil || !strings.Contains(err.Error(), `did you mean "sky_alerts"?`) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkBids(b *testing.B) {
	rel := ct.OpenRelation(b, Source, map[string]string{"kind": "nexmark_bid", "rows": "100000"})
	for range b.N {
		s, _ := rel.Scan(b.Context(), flow.ScanRequest{Columns: []int{0}, Workers: 1})
		for {
			if m, _ := s.Next(b.Context(), 0); m == nil {
				break
			}
		}
	}
}
