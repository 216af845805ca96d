package types

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	"github.com/riverbed/riverbed/core/errs"
)

var zones sync.Map // name → *time.Location

// LoadZone finds a time zone by its IANA name, UTC, or an offset such as +05:30.
func LoadZone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	var loc *time.Location
	switch up := strings.ToUpper(name); {
	case up == "UTC" || up == "GMT" || up == "Z" || up == "ETC/UTC":
		loc = time.UTC
	case name == "" || up == "LOCAL":
	case name[0] == '+' || name[0] == '-':
		p := scanner{s: name}
		if off, _, ok := p.zone(); ok {
			loc = time.FixedZone(name, int(off))
		}
	default:
		loc, _ = time.LoadLocation(name)
	}
	if loc == nil {
		return nil, errs.New(errs.Data, "time zone", "there is no time zone '%s'", name).WithHint("use an IANA name such as Europe/London, or an offset such as +02:00")
	}
	zones.Store(name, loc)
	return loc, nil
}
