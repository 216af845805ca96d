package fn

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// processing is what tells the time at which a row is worked on. It is not now(): a row keeps the time of the step that it came in,
// so it is refused where a row may be taken back.
var processing = []*Scalar{
	{Name: "proctime", Category: DateTime, Purity: Volatile, Summary: "The time of the step that a row came in, or of the run. Outside the promise that both modes agree.",
		Examples: []Example{ex("typeof(proctime())", "TIMESTAMP WITH TIME ZONE")},
		Overloads: []Overload{strict(nil, types.TsTZ, func(c *Call) (arrow.Array, error) {
			at := c.Env.Now.UnixMicro()
			return fixed(c, func(int) int64 { return at })
		})}},
}
