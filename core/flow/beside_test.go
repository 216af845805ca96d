package flow

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func TestBeside(t *testing.T) {
	for _, c := range []struct {
		text string
		want Beside
	}{
		{"", Beside{Watermark: NoWatermark}},
		{"what a plain server says", Beside{Watermark: NoWatermark}},
		{`["riverbed.step"]`, Beside{Watermark: NoWatermark}},
		{`{"riverbed.step":5,"other":{"a":1}}`, Beside{Watermark: NoWatermark}}, // numbers are texts
		{`{"riverbed.barrier":"2","riverbed.step":"5","riverbed.watermark":"-7"}`, Beside{Step: 5, Watermark: -7, Barrier: 2}},
		{`{"riverbed.position":"9","riverbed.replayable":"true"}`, Beside{Watermark: NoWatermark, Position: "9", Replayable: true}},
	} {
		have := ReadBeside([]byte(c.text))
		if have != c.want {
			t.Errorf("%s: %+v, not %+v", c.text, have, c.want)
		}
		if again := ReadBeside(have.Bytes()); again != have {
			t.Errorf("%s: written and read again: %+v", c.text, again)
		}
	}
	if have := string(Delta{Step: 3, Watermark: 1}.Beside().Bytes()); have != `{"riverbed.step":"3","riverbed.watermark":"1"}` {
		t.Error(have)
	}
}

func TestNoRows(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	if b := NoRows(s); b.NumRows() != 0 || !b.Schema().Equal(s) {
		t.Error(b)
	}
}
