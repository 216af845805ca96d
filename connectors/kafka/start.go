package kafka

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/errs"
)

type startKind uint8

const (
	startEarliest startKind = iota
	startLatest
	startTime
	startOffsets
)

// start is where a partition without a position begins.
type start struct {
	kind    startKind
	millis  int64
	offsets map[int32]int64
}

func parseStart(text string) (start, error) {
	switch strings.ToLower(text) {
	case "earliest":
		return start{}, nil
	case "latest":
		return start{kind: startLatest}, nil
	}
	if t, ok := decode.ParseTimestamp(text); ok {
		return start{kind: startTime, millis: t.UnixMilli()}, nil
	}
	s := start{kind: startOffsets, offsets: map[int32]int64{}}
	for _, part := range strings.Split(text, ",") {
		p, o, ok := strings.Cut(strings.TrimSpace(part), ":")
		partition, err1 := strconv.ParseInt(p, 10, 32)
		offset, err2 := strconv.ParseInt(o, 10, 64)
		if !ok || err1 != nil || err2 != nil || partition < 0 || offset < 0 {
			e := errs.New(errs.Usage, "options", "connector 'kafka': start = %q is no place to begin", text)
			if hint := errs.DidYouMean(text, []string{"earliest", "latest"}); hint != "" {
				return s, e.WithHint("%s", hint)
			}
			return s, e.WithHint("write earliest, latest, a point in time (2026-01-01T00:00:00Z) or offsets by partition (0:120,1:80)")
		}
		s.offsets[int32(partition)] = offset
	}
	return s, nil
}

// exact is the offset when it is known without asking the broker.
func (s start) exact(partition int32) (int64, bool) {
	o, ok := s.offsets[partition]
	return o, ok
}

// offset is where the client begins. A partition that appeared after the first look begins at its beginning, whatever
// latest says: its records came after the stream was opened.
func (s start) offset(partition int32, first bool) kgo.Offset {
	switch s.kind {
	case startLatest:
		if first {
			return kgo.NewOffset().AtEnd()
		}
	case startTime:
		return kgo.NewOffset().AfterMilli(s.millis)
	case startOffsets:
		if o, ok := s.offsets[partition]; ok {
			return kgo.NewOffset().At(o)
		}
	}
	return kgo.NewOffset().AtStart()
}
