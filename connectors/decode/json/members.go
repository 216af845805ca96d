package json

// Members calls member for each member of a JSON object, with the text of its value. Both are valid during the call, the value as
// long as msg.
func Members(msg []byte, member func(key, value []byte) error) error {
	p := &parser{data: msg}
	if p.peek() != '{' {
		if p.pos >= len(msg) {
			return errEnd
		}
		return errNotObject
	}
	var name []byte
	err := p.object(func(key []byte) error {
		name = append(name[:0], key...) // reading the value may overwrite it
		value, err := p.raw()
		if err != nil {
			return err
		}
		return member(name, value)
	})
	if err != nil {
		return err
	}
	return p.end()
}
