package main

// #include "riverbed.h"
import "C"

import (
	"context"
	"sync"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// local is a variable of the caller that one text reads. While the text runs (a CREATE TABLE AS, an INSERT, a view that
// reads it at once), its rows are copied, since they may be stored; a query that runs later reads them in place.
type local struct {
	*riverbed.ArrowTable

	mu      sync.Mutex
	rel     *relation
	lent    bool // to the query that the text ended in
	scanned bool
	gone    bool
}

// Scan implements flow.Relation.
func (l *local) Scan(ctx context.Context, req flow.ScanRequest) (flow.Scan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.gone:
		return nil, errs.New(errs.Usage, "scan", "the variable that this reads is gone").WithHint("make a table of it with create_table, or run the query again")
	case l.lent || l.rel == nil:
		return l.ArrowTable.Scan(ctx, req)
	}
	l.scanned = true
	copied, err := l.rel.table()
	if err != nil {
		return nil, err
	}
	return copied.Scan(ctx, req)
}

type locals map[string]*local

func openLocals(names []string, relations []C.rb_handle) (locals, error) {
	out := locals{}
	for i, name := range names {
		rel, err := get[*relation](relations[i])
		if err != nil {
			return nil, err
		}
		table, err := riverbed.NewArrowTable(rel.schema, rel.batches)
		if err != nil {
			return nil, err
		}
		out[name] = &local{ArrowTable: table, rel: rel}
	}
	return out, nil
}

func (ls locals) relations() map[string]flow.Relation {
	if len(ls) == 0 {
		return nil
	}
	out := map[string]flow.Relation{}
	for name, l := range ls {
		out[name] = l
	}
	return out
}

// lend keeps the imports for a query that will read them in place.
func (ls locals) lend() *loan {
	var owners holds
	for _, l := range ls {
		l.mu.Lock()
		l.lent = true
		l.mu.Unlock()
		owners = append(owners, l.rel.owner)
	}
	return newLoan(owners, ls.forget)
}

// forget ends the loan: a plan that somebody still keeps finds the variable gone, and no foreign memory.
func (ls locals) forget() {
	for _, l := range ls {
		l.mu.Lock()
		l.gone = true
		l.mu.Unlock()
	}
}

// settle ends a text that left no query. What it did not read although it ran may have been kept by a view: that
// gets a copy.
func (ls locals) settle(ran bool) {
	for _, l := range ls {
		l.mu.Lock()
		l.gone = !ran || l.scanned
		if !l.gone {
			if t, err := l.rel.table(); err == nil {
				l.ArrowTable = t
			}
		}
		l.rel = nil
		l.mu.Unlock()
	}
}
