package connectors

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/core/errs"
)

// OptionType says how the text of an option is read.
type OptionType string

const (
	String   OptionType = "string"
	Int      OptionType = "int"
	Bool     OptionType = "bool"
	Duration OptionType = "duration" // 500ms, 10s, 5 minutes
	List     OptionType = "list"     // comma separated
	Enum     OptionType = "enum"     // one of Values
)

// Option declares one option. Parsing, documentation and the Python class come from it.
type Option struct {
	Name     string     `json:"name"`
	Type     OptionType `json:"type"`
	Values   []string   `json:"values,omitempty"` // Enum: what may be written
	Default  string     `json:"default,omitempty"`
	Env      string     `json:"env,omitempty"` // environment variable that stands in when the option is not given
	Required bool       `json:"required,omitempty"`
	Secret   bool       `json:"secret,omitempty"` // never printed
	Doc      string     `json:"doc"`
	Example  string     `json:"example,omitempty"`
	Shown    bool       `json:"-"` // stands in the example of the connector's page, as the required ones do
}

// Options is what a connector takes.
type Options []Option

// With returns the options followed by more.
func (o Options) With(more ...Option) Options { return append(slices.Clip(slices.Clone(o)), more...) }

// WithExample returns the options with another example of one.
func (o Options) WithExample(name, example string) Options {
	out := slices.Clone(o)
	for i := range out {
		if out[i].Name == name {
			out[i].Example = example
		}
	}
	return out
}

// Names lists the option names.
func (o Options) Names() []string {
	names := make([]string, len(o))
	for i, opt := range o {
		names[i] = opt.Name
	}
	return names
}

func (o Options) find(name string) (Option, bool) {
	for _, opt := range o {
		if opt.Name == name {
			return opt, true
		}
	}
	return Option{}, false
}

// Settings are options as one CREATE … WITH (…) or one Python object gave them, checked and typed.
// Reading an option that was not declared is a bug and panics.
type Settings struct {
	declared Options
	given    map[string]string // as written, references unresolved
	values   map[string]any    // string, int64, bool, time.Duration or []string
}

// Parse checks given against the declared options of the connector named what ("connector 'kafka'").
// ${NAME} in a value is replaced by the environment variable of that name.
func (o Options) Parse(what string, given map[string]string) (Settings, error) {
	s := Settings{declared: o, given: given, values: map[string]any{}}
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, name)
	}
	sort.Strings(names) // the same mistake gives the same message
	for _, name := range names {
		if _, ok := o.find(name); !ok {
			e := errs.New(errs.Usage, "options", "%s has no option %q", what, name)
			if hint := errs.DidYouMean(name, o.Names()); hint != "" {
				return s, e.WithHint("%s", hint)
			}
			return s, e.WithHint("its options are %s", strings.Join(o.Names(), ", "))
		}
	}
	for _, opt := range o {
		text, ok := given[opt.Name]
		if !ok && opt.Env != "" {
			text, ok = os.LookupEnv(opt.Env)
		}
		if !ok {
			if opt.Required {
				e := errs.New(errs.Usage, "options", "%s needs the option %q: %s", what, opt.Name, opt.Doc)
				if opt.Env != "" {
					return s, e.WithHint("write %s = '%s', or set %s in the environment", opt.Name, opt.Example, opt.Env)
				}
				return s, e.WithHint("write %s = '%s'", opt.Name, opt.Example)
			}
			if opt.Default == "" {
				continue
			}
			text = opt.Default
		}
		text, err := expand(what, opt, text)
		if err != nil {
			return s, err
		}
		v, err := opt.parse(text)
		if err != nil {
			shown := strconv.Quote(text)
			if opt.Secret {
				shown = "the value given"
			}
			return s, errs.New(errs.Usage, "options", "%s: %s is not right for the option %q: %w", what, shown, opt.Name, err)
		}
		s.values[opt.Name] = v
	}
	return s, nil
}

// expand replaces ${NAME}.
func expand(what string, opt Option, text string) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			b.WriteString(text)
			return b.String(), nil
		}
		value, set := os.LookupEnv(name)
		if !set {
			return "", errs.New(errs.Usage, "options", "%s: the option %q refers to ${%s}, which is not set", what, opt.Name, name).
				WithHint("set %s in the environment of this process", name)
		}
		b.WriteString(before)
		b.WriteString(value)
		text = after
	}
}

func (opt Option) parse(text string) (any, error) {
	switch opt.Type {
	case Int:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("it takes a whole number")
		}
		return n, nil
	case Bool:
		switch strings.ToLower(text) {
		case "true", "on", "yes", "1":
			return true, nil
		case "false", "off", "no", "0":
			return false, nil
		}
		return nil, fmt.Errorf("it takes true or false")
	case Duration:
		return parseDuration(text)
	case List:
		return splitList(text), nil
	case Enum:
		for _, v := range opt.Values {
			if strings.EqualFold(v, text) {
				return v, nil
			}
		}
		if hint := errs.DidYouMean(text, opt.Values); hint != "" {
			return nil, fmt.Errorf("it takes one of %s; %s", strings.Join(opt.Values, ", "), hint)
		}
		return nil, fmt.Errorf("it takes one of %s", strings.Join(opt.Values, ", "))
	}
	return text, nil
}

func splitList(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// parseDuration reads Go's spelling (1m30s) and SQL's ("5 minutes").
func parseDuration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err == nil {
		return d, nil
	}
	fields := strings.Fields(strings.ToLower(text))
	if len(fields) == 2 {
		n, err := strconv.ParseFloat(fields[0], 64)
		if unit, ok := units[strings.TrimSuffix(fields[1], "s")]; ok && err == nil {
			return time.Duration(n * float64(unit)), nil
		}
	}
	return 0, fmt.Errorf("it takes a duration such as 500ms, 10s or '5 minutes'")
}

var units = map[string]time.Duration{
	"millisecond": time.Millisecond, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}

// Has reports whether the option was given, has a default or came from the environment.
func (s Settings) Has(name string) bool { _, ok := s.values[s.mustDeclare(name)]; return ok }

// String returns a string or enum option; "" when absent.
func (s Settings) String(name string) string {
	v, _ := s.values[s.mustDeclare(name)].(string)
	return v
}

// Int returns an int option; 0 when absent.
func (s Settings) Int(name string) int64 { v, _ := s.values[s.mustDeclare(name)].(int64); return v }

// Bool returns a bool option; false when absent.
func (s Settings) Bool(name string) bool { v, _ := s.values[s.mustDeclare(name)].(bool); return v }

// Duration returns a duration option; 0 when absent.
func (s Settings) Duration(name string) time.Duration {
	v, _ := s.values[s.mustDeclare(name)].(time.Duration)
	return v
}

// List returns a list option; nil when absent.
func (s Settings) List(name string) []string {
	v, _ := s.values[s.mustDeclare(name)].([]string)
	return v
}

// AIDEV-NOTE: panics; a connector that reads an option it did not declare is a bug of ours.
func (s Settings) mustDeclare(name string) string {
	if _, ok := s.declared.find(name); !ok {
		panic(errs.Bug("options", "option %q is read and was never declared", name))
	}
	return name
}

// Shown returns the given options fit for EXPLAIN, logs and manifests: references stay references,
// secrets are starred.
func (s Settings) Shown() map[string]string {
	out := make(map[string]string, len(s.given))
	for name, text := range s.given {
		if opt, _ := s.declared.find(name); opt.Secret && !strings.HasPrefix(text, "${") {
			text = "***"
		}
		out[name] = text
	}
	return out
}
