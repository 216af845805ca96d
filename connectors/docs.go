package connectors

import (
	"fmt"
	"strings"
)

// Markdown is the reference page of a source, from its declaration.
func (s Source) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Source `%s`\n\n%s Python: `rb.%s`.\n\n", s.Name, s.Summary, s.Class)
	var can []string
	if s.Relation != nil {
		can = append(can, "table (bounded)")
	}
	if s.Stream != nil {
		can = append(can, "stream")
	}
	if s.Replayable {
		can = append(can, "replayable positions")
	}
	fmt.Fprintf(&b, "Can be: %s.", strings.Join(can, ", "))
	if len(s.Functions) > 0 {
		fmt.Fprintf(&b, " Table functions: `%s`.", strings.Join(s.Functions, "`, `"))
	}
	if len(s.Extensions) > 0 {
		fmt.Fprintf(&b, " `FROM 'file'` with the endings `%s`.", strings.Join(s.Extensions, "`, `"))
	}
	if s.Holds != "" {
		fmt.Fprintf(&b, " `FROM 'folder'` where the folder holds `%s`.", s.Holds)
	}
	b.WriteString("\n\n")
	if s.Stream != nil {
		example(&b, "STREAM", s.Name, s.Class, s.Options)
	} else {
		example(&b, "TABLE", s.Name, s.Class, s.Options)
	}
	s.Options.markdown(&b)
	return b.String()
}

// Markdown is the reference page of a sink, from its declaration.
func (s Sink) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Sink `%s`\n\n%s Python: `rb.%s`.\n\n", s.Name, s.Summary, s.Class)
	delivery := "at least once"
	if s.ExactlyOnce {
		delivery = "exactly once"
	}
	fmt.Fprintf(&b, "Delivery: %s; %s.", delivery, s.takes())
	if len(s.Extensions) > 0 {
		fmt.Fprintf(&b, " `COPY … TO 'file'` with the endings `%s`.", strings.Join(s.Extensions, "`, `"))
	}
	b.WriteString("\n\n")
	example(&b, "SINK", s.Name, s.Class, s.Options)
	s.Options.markdown(&b)
	return b.String()
}

// takes says what becomes of changes.
func (s Sink) takes() string {
	switch s.Updates {
	case Changelog:
		return "takes changes with their weights"
	case Keyed:
		return "with `key` upserts, without one only adds rows"
	}
	var also []string
	for _, name := range []string{"upsert", "changelog"} {
		if _, ok := s.Options.find(name); ok {
			also = append(also, "`"+name+"`")
		}
	}
	if len(also) == 0 {
		return "only adds rows"
	}
	return "only adds rows, but with " + strings.Join(also, " or ") + " takes changes"
}

// example shows the least that names the connector, in SQL and in Python.
func example(b *strings.Builder, kind, name, class string, options Options) {
	var sql, python strings.Builder
	for _, opt := range options {
		if opt.Required && opt.Example == "" {
			return // rows come from the program
		}
		if opt.Required || opt.Shown {
			fmt.Fprintf(&sql, ", %s = '%s'", opt.Name, opt.Example)
			fmt.Fprintf(&python, ", %s=%q", opt.Name, opt.Example)
		}
	}
	if sql.Len() > 0 {
		fmt.Fprintf(b, "`CREATE %s name WITH (connector = '%s'%s)`, in Python `rb.%s(%s)`.\n\n", kind, name, sql.String(), class, strings.TrimPrefix(python.String(), ", "))
	}
}

func (o Options) markdown(b *strings.Builder) {
	b.WriteString("| option | type | default | |\n|---|---|---|---|\n")
	for _, opt := range o {
		kind := string(opt.Type)
		if opt.Type == Enum {
			kind = "`" + strings.Join(opt.Values, "`, `") + "`"
		}
		def := "–"
		switch {
		case opt.Env != "":
			def = "`$" + opt.Env + "`"
		case opt.Required:
			def = "required"
		case opt.Default != "":
			def = "`" + strings.ReplaceAll(opt.Default, "|", `\|`) + "`"
		}
		doc := opt.Doc
		if opt.Example != "" {
			doc += " Example: `" + opt.Example + "`."
		}
		if opt.Secret {
			doc += " Never printed."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", opt.Name, kind, def, strings.ReplaceAll(doc, "|", `\|`))
	}
}
