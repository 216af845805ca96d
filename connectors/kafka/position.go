package kafka

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/riverbed/riverbed/core/flow"
)

// position is where a reader of a partition stands, written "offset@epoch/topic": the offset of the next record, the leader
// epoch of the one before, by which the brokers tell that they have lost records since, and the topic's id, which changes
// when a topic is deleted and made anew. What is not known is left out.
type position struct {
	offset int64
	epoch  int32 // -1: not known
	topic  kadm.TopicID
}

func (p position) String() string {
	s := strconv.FormatInt(p.offset, 10)
	if p.epoch >= 0 {
		s += "@" + strconv.Itoa(int(p.epoch))
	}
	if p.topic != (kadm.TopicID{}) {
		s += "/" + base64.RawURLEncoding.EncodeToString(p.topic[:])
	}
	return s
}

func parsePosition(from flow.Position) (position, error) {
	p := position{epoch: -1}
	rest, topic, hasTopic := strings.Cut(string(from), "/")
	offset, epoch, hasEpoch := strings.Cut(rest, "@")
	var err error
	if p.offset, err = strconv.ParseInt(offset, 10, 64); err != nil || p.offset < 0 {
		return p, fmt.Errorf("%q is no offset", string(from))
	}
	if hasEpoch {
		n, err := strconv.ParseInt(epoch, 10, 32)
		if err != nil || n < 0 {
			return p, fmt.Errorf("%q has no leader epoch", string(from))
		}
		p.epoch = int32(n)
	}
	if hasTopic {
		id, err := base64.RawURLEncoding.DecodeString(topic)
		if err != nil || len(id) != len(p.topic) {
			return p, fmt.Errorf("%q has no id of a topic", string(from))
		}
		copy(p.topic[:], id)
	}
	return p, nil
}
