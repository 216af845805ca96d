package generator

import (
	"fmt"
	"math"
	"sync"

	"github.com/riverbed/riverbed/core/types"
)

// NEXMark: of every 50 events one is a person, three are auctions and 46 bids, 10,000 events a second of event time.
// A stream of one kind holds the events of that kind in the order of time.
const (
	startMS      = 1_577_836_800_000 // 2020-01-01
	eventsPerSec = 10_000
	group        = 50 // events
	auctions     = 3  // of a group; one person, the rest bids
	bids         = 46
	firstPerson  = 1000
	firstAuction = 1000
	firstCat     = 10
	hotRatio     = 100
)

// makeWords makes words of a prefix and ten letters, the same whatever the seed.
func makeWords(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		d := roll(7, prefix, int64(i))
		b := []byte(prefix)
		for range 10 {
			b = append(b, byte('a'+d.below(26)))
		}
		out[i] = string(b)
	}
	return out
}

// lexicon is what the text columns draw from. It is made at the first use, not when the library is loaded.
type lexicon struct {
	names, emails, cards, items, texts, extras, states, cities, channels, urls []string
}

var words = sync.OnceValue(func() *lexicon {
	return &lexicon{
		names: makeWords("n ", 99), emails: makeWords("e@", 9973), cards: makeWords("cc", 9973),
		items: makeWords("i", 997), texts: makeWords("d", 9973), extras: makeWords("x", 997),
		states:   []string{"AZ", "CA", "ID", "OR", "WA", "WY"},
		cities:   []string{"phoenix", "los angeles", "san francisco", "boise", "portland", "bend", "redmond", "seattle", "kent", "cheyenne"},
		channels: append([]string{"Google", "Facebook", "Baidu", "Apple"}, numbered("channel-%d", moreChannels)...),
		urls:     makeURLs(),
	}
})

// moreChannels are the channels besides the four that half of the bids come from.
const moreChannels = 10_000

func numbered(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

func makeURLs() []string {
	out := make([]string, 0, 10_004)
	for _, h := range []string{"google", "facebook", "baidu", "apple"} {
		out = append(out, fmt.Sprintf("https://www.nexmark.com/%s/item.htm?query=1", h))
	}
	for i := range moreChannels {
		out = append(out, fmt.Sprintf("https://www.nexmark.com/%05d/%05d/item.htm?query=1&channel_id=%d", i*7919%9973, i*104729%99991, i))
	}
	return out
}

func (c *columns) pick(col int, from []string, d *dice) { c.add(col, from[d.below(int64(len(from)))]) }

func timeOf(event int64) int64 { return startMS + event*1000/eventsPerSec }

// nearPerson is one of the last thousand persons seen.
func nearPerson(last int64, d *dice) int64 {
	return last - int64(d.unit()*float64(min(last+1, 1000)))
}

func price(d *dice) int64 { return int64(math.RoundToEven(math.Pow(10, d.unit()*6) * 100)) }

var big, str, ms = types.Int64, types.String, types.TsMS

var personKind = kind{name: "nexmark_person", fields: []types.Field{
	{Name: "id", Type: big}, {Name: "name", Type: str}, {Name: "emailAddress", Type: str}, {Name: "creditCard", Type: str},
	{Name: "city", Type: str}, {Name: "state", Type: str}, {Name: "dateTime", Type: ms}, {Name: "extra", Type: str}},
	fill: func(c *columns, seed uint64, first int64, rows int) {
		l := words()
		for i := range rows {
			n := first + int64(i)
			d := roll(seed, "person", n)
			c.ints[0][i] = firstPerson + n
			c.pick(1, l.names, &d)
			c.pick(2, l.emails, &d)
			c.pick(3, l.cards, &d)
			c.pick(4, l.cities, &d)
			c.pick(5, l.states, &d)
			c.ints[6][i] = timeOf(n * group)
			c.pick(7, l.extras, &d)
		}
	}}

var auctionKind = kind{name: "nexmark_auction", fields: []types.Field{
	{Name: "id", Type: big}, {Name: "itemName", Type: str}, {Name: "description", Type: str}, {Name: "initialBid", Type: big},
	{Name: "reserve", Type: big}, {Name: "dateTime", Type: ms}, {Name: "expires", Type: ms}, {Name: "seller", Type: big},
	{Name: "category", Type: big}, {Name: "extra", Type: str}},
	fill: func(c *columns, seed uint64, first int64, rows int) {
		l := words()
		for i := range rows {
			n := first + int64(i)
			d := roll(seed, "auction", n)
			epoch := n / auctions
			at := timeOf(epoch*group + 1 + n%auctions)
			c.ints[0][i] = firstAuction + n
			c.pick(1, l.items, &d)
			c.pick(2, l.texts, &d)
			initial := price(&d)
			c.ints[3][i] = initial
			c.ints[4][i] = initial + price(&d)
			c.ints[5][i] = at
			c.ints[6][i] = at + 1 + int64(d.unit()*2*100*50*1000/eventsPerSec/3*2) + 1000
			if d.unit() < 0.75 {
				c.ints[7][i] = epoch/hotRatio*hotRatio + firstPerson
			} else {
				c.ints[7][i] = nearPerson(epoch, &d) + firstPerson
			}
			c.ints[8][i] = firstCat + d.below(5)
			c.pick(9, l.extras, &d)
		}
	}}

var bidKind = kind{name: "nexmark_bid", fields: []types.Field{
	{Name: "auction", Type: big}, {Name: "bidder", Type: big}, {Name: "price", Type: big}, {Name: "channel", Type: str},
	{Name: "url", Type: str}, {Name: "dateTime", Type: ms}, {Name: "extra", Type: str}},
	fill: func(c *columns, seed uint64, first int64, rows int) {
		l := words()
		for i := range rows {
			n := first + int64(i)
			d := roll(seed, "bid", n)
			epoch := n / bids
			last := epoch*auctions + auctions - 1
			if d.unit() < 0.5 {
				c.ints[0][i] = last/hotRatio*hotRatio + firstAuction
			} else {
				low := max(last-100, 0)
				c.ints[0][i] = low + int64(d.unit()*float64(last-low+1)) + firstAuction
			}
			if d.unit() < 0.75 {
				c.ints[1][i] = epoch/hotRatio*hotRatio + 1 + firstPerson
			} else {
				c.ints[1][i] = nearPerson(epoch, &d) + firstPerson
			}
			c.ints[2][i] = price(&d)
			ch := d.below(4)
			if d.unit() >= 0.5 {
				ch = 4 + d.below(moreChannels)
			}
			c.add(3, l.channels[ch])
			c.add(4, l.urls[ch])
			c.ints[5][i] = timeOf(epoch*group + group - bids + n%bids)
			c.pick(6, l.extras, &d)
		}
	}}
