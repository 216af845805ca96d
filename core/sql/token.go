package sql

import (
	"fmt"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

type tokenKind uint8

const (
	tokEnd     tokenKind = iota
	tokWord              // unquoted name or keyword
	tokQuoted            // "name"
	tokString            // 'text', E'text', $$text$$
	tokBlob              // x'00ff'
	tokInt               //
	tokDecimal           //
	tokDouble            //
	tokParam             // $1, $name
	tokSymbol            //
)

// token is one lexical unit. key is what the parser compares with: a word in
// capitals, a symbol as it is, and "" for everything else, so that a string
// or a quoted name never passes for a keyword.
type token struct {
	kind tokenKind
	key  string
	text string // names as written, strings decoded, numbers as plain digits
	pos  errs.Pos
}

// String says what was found, for messages.
func (t token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end of the text"
	case tokQuoted:
		return "the name " + quoteName(t.text)
	case tokString:
		return "the string " + quoteString(shorten(t.text))
	case tokBlob:
		return "a blob"
	case tokInt, tokDecimal, tokDouble:
		return "the number " + shorten(t.text)
	case tokParam:
		return fmt.Sprintf("the parameter $%s", shorten(t.text))
	}
	return "'" + shorten(t.text) + "'"
}

// shorten keeps a message readable when the token is long.
func shorten(s string) string {
	const limit = 40
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// words makes a set of the words of a text.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// reserved words are no names unless quoted, or after AS or a dot. The list is DuckDB's.
var reserved = words(`
	ALL ANALYSE ANALYZE AND ANY ARRAY AS ASC ASYMMETRIC BOTH CASE CAST CHECK COLLATE COLUMN CONSTRAINT CREATE
	DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT FALSE FETCH FOR FOREIGN FROM GROUP HAVING IN
	INITIALLY INTERSECT INTO LAMBDA LATERAL LEADING LIMIT NOT NULL OFFSET ON ONLY OR ORDER PIVOT PIVOT_LONGER
	PIVOT_WIDER PLACING PRIMARY QUALIFY REFERENCES RETURNING SELECT SHOW SOME SUMMARIZE SYMMETRIC TABLE THEN TO
	TRAILING TRUE UNION UNIQUE UNPIVOT USING VARIADIC WHEN WHERE WINDOW WITH`)

// functionOnly words may name a function or a type, but no column and no table.
var functionOnly = words(`
	ANTI ASOF AT AUTHORIZATION BETWEEN BINARY COLLATION CONCURRENTLY CROSS FREEZE FULL GLOB ILIKE INNER IS ISNULL JOIN
	LEFT LIKE NATURAL NOTNULL OUTER OVERLAPS POSITIONAL RIGHT SEMI SIMILAR TABLESAMPLE VERBOSE`)

// notAlias words begin a clause, so they are no alias unless AS stands before them.
var notAlias = words(`
	BY EMIT EXCLUDE FILTER IGNORE MATCH_RECOGNIZE OVER RENAME REPLACE RESPECT SET VALUES WITHIN`)

// ownSyntax words have a form of their own in an expression, so the printer
// quotes a column or function that has such a name.
var ownSyntax = words(`COLUMNS CUBE EXISTS EXTRACT INTERVAL MAP ROLLUP ROW TRY_CAST VALUES`)

// calledWithoutParens are functions that the standard calls by name alone.
var calledWithoutParens = words(`
	CURRENT_CATALOG CURRENT_DATE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP
	SESSION_USER`)

// plainWord reports whether s is made of ASCII letters, digits and underscores.
func plainWord(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// plainName reports whether a column, table or alias needs no quotes.
func plainName(name string) bool {
	key := strings.ToUpper(name)
	return plainWord(name) && !reserved[key] && !functionOnly[key] && !notAlias[key] && !ownSyntax[key] &&
		!calledWithoutParens[key]
}

// plainFunction reports whether a function's name needs no quotes before its parenthesis.
func plainFunction(name string) bool {
	key := strings.ToUpper(name)
	return plainWord(name) && !reserved[key] && (!ownSyntax[key] || key == "MAP")
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
