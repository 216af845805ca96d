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
	updates := map[Updates]string{AppendOnly: "only adds rows", Changelog: "takes changes with their weights", Keyed: "upserts by key"}[s.Updates]
	fmt.Fprintf(&b, "Delivery: %s; %s.", delivery, updates)
	if len(s.Extensions) > 0 {
		fmt.Fprintf(&b, " `COPY … TO 'file'` with the endings `%s`.", strings.Join(s.Extensions, "`, `"))
	}
	b.WriteString("\n\n")
	s.Options.markdown(&b)
	return b.String()
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
