package riverbed

import (
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

func (s *Session) set(st *sql.Set) error {
	v, err := s.optionValue(sql.Option{At: st.At, Key: st.Name, Value: st.Value})
	if err != nil {
		return err
	}
	return s.setting(st.Name, v, st.Position())
}

func (s *Session) setting(name, v string, pos errs.Pos) error {
	set := findSetting(strings.ReplaceAll(name, "threads", "parallelism"))
	if set == nil {
		e := errs.As(unknownSetting(name))
		e.Pos = pos
		return e
	}
	c := *s.cfg
	if err := set.set(&c, v); err != nil {
		e := errs.As(err)
		e.Pos = pos
		return e
	}
	zone, err := loadZone(c.timeZone)
	if err != nil {
		return err
	}
	if c.memoryLimit != s.cfg.memoryLimit {
		s.memory.SetLimit(c.memoryLimit)
	}
	s.cfg, s.zone = &c, zone
	return nil
}

func (s *Session) reset(st *sql.Reset) error {
	fresh, err := newConfig(nil)
	if err != nil {
		return err
	}
	set := findSetting(st.Name)
	if set == nil {
		return unknownSetting(st.Name)
	}
	return s.setting(st.Name, currentSetting(fresh, set.key), st.Position())
}
