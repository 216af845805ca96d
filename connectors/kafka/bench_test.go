package kafka

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/core/types"
)

// BenchmarkRead reads 1,000,000 JSON messages of about 200 bytes from the broker that RIVERBED_BENCH_KAFKA names,
// beside a bare loop over the same topic.
func BenchmarkRead(b *testing.B) {
	addr := os.Getenv("RIVERBED_BENCH_KAFKA")
	if addr == "" {
		b.Skip("RIVERBED_BENCH_KAFKA names no broker")
	}
	const topic, messages = "riverbed_bench", 1_000_000
	fill(b, addr, topic, messages)
	fields := []types.Field{{Name: "trade_id", Type: types.Int64}, {Name: "symbol", Type: types.String}, {Name: "price", Type: types.Float64}, {Name: "ts", Type: types.TsUS}}
	b.Run("bare", func(b *testing.B) {
		for range b.N {
			c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			if err != nil {
				b.Fatal(err)
			}
			for n := 0; n < messages; {
				n += c.PollFetches(context.Background()).NumRecords()
			}
			c.Close()
		}
	})
	b.Run("rows", func(b *testing.B) {
		for range b.N {
			s := latest(b, map[string]string{"brokers": addr, "topic": topic}, fields...)
			splits, _ := s.Splits(b.Context())
			done := make(chan int64, len(splits))
			for _, sp := range splits {
				go func() {
					r, err := s.Open(context.Background(), sp, "")
					n := int64(0)
					for err == nil {
						rows, e := r.Read(context.Background(), 64<<10)
						if err = e; rows.Batch != nil {
							n += rows.Batch.NumRows()
						}
					}
					r.Close()
					done <- n
				}()
			}
			total := int64(0)
			for range splits {
				total += <-done
			}
			if total != messages {
				b.Fatalf("%d rows", total)
			}
		}
	})
}

func fill(b *testing.B, addr, topic string, messages int) {
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := kadm.NewClient(c).CreateTopic(b.Context(), 2, 1, nil, topic); err != nil {
		return // it is there from an earlier run
	}
	for i := range messages {
		v := fmt.Appendf(nil, `{"trade_id":%d,"symbol":"SYM%03d","price":%d.%02d,"quantity":%d,"side":"%s","venue":"XNAS","ts":"2020-01-01T00:%02d:%02d.%03dZ","account":"acc-%06d","note":"a note","flags":[1,2,3]}`,
			i, i%500, 100+i%50, i%100, i%1000, []string{"buy", "sell"}[i%2], i/60%60, i%60, i%1000, i%100000)
		c.Produce(context.Background(), &kgo.Record{Value: v}, nil)
	}
	if err := c.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
