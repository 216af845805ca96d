package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/riverbed/riverbed/connectors/all"
)

// connectorPages makes one page for each name, with its source and its sink, and an index.
func connectorPages(root string) ([]Page, error) {
	text := map[string]string{}
	var order []string
	add := func(name, part string) {
		if text[name] == "" {
			order = append(order, name)
		}
		text[name] += part + "\n"
	}
	var index strings.Builder
	index.WriteString(generated("connectors/all") + "# Connectors\n\n| connector | source | sink | |\n|---|---|---|---|\n")
	about := map[string][3]string{}
	for _, s := range all.Sources {
		add(s.Name, s.Markdown())
		var kinds []string
		if s.Relation != nil {
			kinds = append(kinds, "table")
		}
		if s.Stream != nil {
			kinds = append(kinds, "stream")
		}
		about[s.Name] = [3]string{strings.Join(kinds, ", "), "", s.Summary}
	}
	for _, s := range all.Sinks {
		add(s.Name, s.Markdown())
		a := about[s.Name]
		a[1] = "at least once"
		if s.ExactlyOnce {
			a[1] = "exactly once"
		}
		if a[2] == "" {
			a[2] = s.Summary
		}
		about[s.Name] = a
	}
	var out []Page
	for _, name := range order {
		a := about[name]
		fmt.Fprintf(&index, "| [%s](%s.md) | %s | %s | %s |\n", name, name, a[0], a[1], cell(a[2]))
		folder := name
		if name == "arrow" { // a Go package of that name would hide Arrow itself
			folder = "arrowipc"
		}
		types, err := os.ReadFile(filepath.Join(root, "connectors", folder, "TYPES.md"))
		switch {
		case err == nil: // its headings go one down
			text[name] += strings.ReplaceAll("#"+strings.TrimSpace(string(types)), "\n#", "\n##") + "\n"
		case !os.IsNotExist(err):
			return nil, err
		}
		out = append(out, Page{"docs/connectors/" + name + ".md", generated("connectors/"+name) + "# " + name + "\n\n" + text[name]})
	}
	index.WriteString("\n" + strings.TrimSpace(`
In SQL a connector is named in CREATE STREAM, CREATE TABLE or CREATE SINK, `+"`WITH (connector = 'kafka', topic = 'trades')`"+`. In
Python it is a class with the same options, `+"`rb.Kafka(topic=\"trades\")`"+`, handed to `+"`create_stream`, `create_table` or `sink`"+`.
Columns that are not declared (`+"`CREATE STREAM trades (symbol TEXT, ts TIMESTAMP, …) WITH (…)`"+`, in Python `+"`schema=`"+`) are those that the source has, or are
inferred from its first rows. A stream's watermark is declared among the columns, `+"`WATERMARK FOR ts AS ts - INTERVAL '5 seconds'`"+`, in Python every source
takes it: `+"`rb.Kafka(topic=\"trades\", watermark=\"ts - INTERVAL '5 seconds'\")`"+`.
A value may refer to an environment variable, `+"`'${KAFKA_PASSWORD}'`"+`; secrets are never printed.
A Python function is a sink too: `+"`query.sink(print)`"+`.`) + "\n")
	return append(out, Page{"docs/connectors/README.md", index.String()}), nil
}
