package riverbed

// MemoryLimit is what operators of the session may hold, in bytes; 0 is no limit.
func (s *Session) MemoryLimit() int64 { return s.memory.Limit() }
