package riverbed

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// SET and RESET replace the session's configuration whole: what runs keeps the one that it began with.

func (s *Session) set(st *sql.Set) error {
	v, err := s.optionValue(sql.Option{At: st.At, Key: st.Name, Value: st.Value})
	if err != nil {
		return err
	}
	return s.setting(st.Name, v, st.Position())
}

// reset returns to what the session was opened with.
func (s *Session) reset(st *sql.Reset) error {
	set := findSetting(st.Name)
	if set == nil {
		return unknownSettingAt(st.Name, st.Position())
	}
	return s.setting(st.Name, set.get(s.opened), st.Position())
}

func (s *Session) setting(name, v string, pos errs.Pos) error {
	set := findSetting(name)
	if set == nil {
		return unknownSettingAt(name, pos)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := *s.cfg.Load()
	if err := set.apply(&c, name, v); err != nil {
		e := errs.As(err)
		e.Pos = pos
		return e
	}
	s.memory.SetLimit(c.memoryLimit)
	s.cfg.Store(&c)
	return nil
}

func unknownSettingAt(name string, pos errs.Pos) error {
	e := unknownSetting(name)
	e.Pos = pos
	return e
}
