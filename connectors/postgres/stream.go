package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// stream is a table and its changes: first its rows at the moment where the slot begins, as one transaction, then the transactions
// that are committed from there on. It has one split.
type stream struct {
	db          *database
	name        string
	table       *table
	fields      []types.Field
	at          []int // places of the fields among the table's columns
	key         []int // columns of the key: old rows are not in the log; nil: they are
	slot        string
	publication string
	drop        bool
	clock       clock.Clock
	wait        time.Duration // how long the server waits for a sign of life
	end         pglogrepl.LSN // 0: never ends

	mu     sync.Mutex
	opened bool          // a reader was opened: positions of later ones need not be in a checkpoint
	reader *reader       // the one that is open
	kept   bool          // a durable checkpoint has a position: the slot is its own
	acked  pglogrepl.LSN // up to where the checkpoint is
}

// theSplit is the name of the one split.
const theSplit = "0"

var slotName = regexp.MustCompile(`^[a-z0-9_]{1,58}$`)

func openStream(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
	set := req.Settings
	s := &stream{name: req.Name, slot: set.String("slot"), publication: set.String("publication"), drop: set.Bool("drop_slot"), clock: req.Time()}
	if s.slot != "" && !slotName.MatchString(s.slot) {
		return nil, errs.New(errs.Usage, "options", "connector 'postgres': %q is no name of a slot", s.slot).WithHint("up to 58 small letters, digits and underscores")
	}
	var err error
	if s.db, s.table, err = openTable(ctx, req); err != nil {
		return nil, err
	}
	if s.name == "" {
		s.name = s.table.String()
	}
	if s.table.kind != 'r' && s.table.kind != 'p' {
		return nil, errs.New(errs.Unsupported, "open", "%s is not a table of its own: the server's log has no changes of it", s.table).WithHint("read it as a table (CREATE TABLE), or follow the tables below it")
	}
	if s.fields, s.at, err = s.table.choose(req.Schema); err != nil {
		return nil, err
	}
	for i := len(s.at) - 1; i >= 0; i-- {
		if !s.table.columns[s.at[i]].generated {
			continue
		}
		if req.Schema != nil {
			return nil, errs.New(errs.Unsupported, "open", "the column %q of the table %s is generated, and the server's log does not have it", s.fields[i].Name, s.table).WithHint("compute it in the query")
		}
		s.fields, s.at = slices.Delete(s.fields, i, i+1), slices.Delete(s.at, i, i+1)
	}
	if s.key, err = s.identity(req.Key); err != nil {
		return nil, err
	}
	if _, err := newColumnReader(s.fields); err != nil {
		return nil, err
	}
	_, err = ask(ctx, s.db, "open", "changes of the table "+s.table.String()+" of %s cannot be read", func(ctx context.Context, conn *pgconn.PgConn) (struct{}, error) {
		return struct{}{}, s.check(ctx, conn, set.Bool("create_publication"))
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// identity finds the key by which the log tells rows apart; nil when it has whole old rows.
func (s *stream) identity(declared []string) (key []int, err error) {
	t := s.table
	switch {
	case t.identity == 'f':
		if declared != nil {
			return nil, errs.New(errs.Usage, "open", "the log has whole rows of the table %s (REPLICA IDENTITY FULL), so it takes no PRIMARY KEY", t).WithHint("leave it out")
		}
		return nil, nil
	case t.identity == 'n' || len(t.key) == 0:
		return nil, errs.New(errs.Unsupported, "open", "the log of the server does not tell which rows of the table %s go: it has no primary key, or its replica identity is NOTHING", t).
			WithHint("ALTER TABLE %s REPLICA IDENTITY FULL, or give it a primary key", t.sql())
	}
	for _, name := range t.key {
		at := slices.Index(s.at, t.find(name))
		if at < 0 {
			return nil, errs.New(errs.Schema, "open", "the stream %q lacks the column %q, which is of the key of the table %s", s.name, name, t).WithHint("declare it too")
		}
		key = append(key, at)
	}
	if declared == nil {
		return key, nil
	}
	same := len(declared) == len(key)
	for _, name := range declared {
		same = same && slices.ContainsFunc(key, func(at int) bool { return strings.EqualFold(s.fields[at].Name, name) })
	}
	if !same {
		return nil, errs.New(errs.Schema, "open", "the key of the table %s is (%s), and the stream %q declares (%s)", t, strings.Join(t.key, ", "), s.name, strings.Join(declared, ", ")).WithHint("leave the PRIMARY KEY out, or declare that one")
	}
	return key, nil
}

// check looks that the server can give changes of the table.
func (s *stream) check(ctx context.Context, conn *pgconn.PgConn, create bool) error {
	rows, _, err := query(ctx, conn, "SELECT current_setting('wal_level'), current_setting('server_version_num'), (SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout')")
	if err != nil {
		return err
	}
	if level := string(rows[0][0]); level != "logical" {
		return errs.New(errs.Source, "open", "%s gives no changes: its wal_level is %s", s.db, level).WithHint("set wal_level = logical there and restart it")
	}
	if version := number(rows[0][1]); version < 120000 {
		return errs.New(errs.Unsupported, "open", "%s is a server of version %d; changes are read from 12 on", s.db, version/10000)
	}
	s.wait = time.Duration(number(rows[0][2])) * time.Millisecond
	return s.publish(ctx, conn, create)
}

func (s *stream) Fields() []types.Field { return s.fields }
func (s *stream) Updating() bool        { return true }
func (s *stream) Key() []int            { return s.key }
func (s *stream) Bounded() bool         { return s.end != 0 }

// UniqueKeys: the primary key of the table holds at the end of each transaction.
func (s *stream) UniqueKeys() [][]int {
	var key []int
	for _, name := range s.table.key {
		at := slices.Index(s.at, s.table.find(name))
		if at < 0 {
			return nil
		}
		key = append(key, at)
	}
	if s.key != nil || key == nil {
		return nil // an upsert stream says so by its Key
	}
	return [][]int{key}
}

// Replayable: a temporary slot ends with its connection.
func (s *stream) Replayable() bool { return s.slot != "" }

func (s *stream) Splits(context.Context) ([]flow.Split, error) {
	return []flow.Split{{ID: theSplit}}, nil
}

// UntilLatest ends where the log ends now.
func (s *stream) UntilLatest(ctx context.Context) (flow.Stream, error) {
	end, err := ask(ctx, s.db, "open", "the end of the log of %s cannot be read", func(ctx context.Context, conn *pgconn.PgConn) (pglogrepl.LSN, error) {
		rows, _, err := query(ctx, conn, "SELECT pg_current_wal_insert_lsn()")
		if err != nil {
			return 0, err
		}
		// So that the log goes on behind that place, and we hear that it was passed. A user who may not do so waits for others' writes.
		_, _, _ = query(ctx, conn, "SELECT pg_logical_emit_message(false, 'riverbed', '')")
		return pglogrepl.ParseLSN(string(rows[0][0]))
	})
	if err != nil {
		return nil, err
	}
	return &stream{db: s.db, name: s.name, table: s.table, fields: s.fields, at: s.at, key: s.key, slot: s.slot, publication: s.publication, drop: s.drop, clock: s.clock, wait: s.wait, end: end}, nil
}

// place is a position: behind the transaction that ends at lsn, and behind some rows of the next one that has any.
type place struct {
	lsn  pglogrepl.LSN
	rows int
}

func (p place) String() string {
	if p.rows == 0 {
		return p.lsn.String()
	}
	return p.lsn.String() + "+" + strconv.Itoa(p.rows)
}

// firstRead begins positions within the rows that the table had at first.
const firstRead = "first+"

func parsePlace(from flow.Position) (p place, err error) {
	text, rows, within := strings.Cut(string(from), "+")
	if p.lsn, err = pglogrepl.ParseLSN(text); err != nil {
		return p, fmt.Errorf("%q is no place in the log of PostgreSQL", string(from))
	}
	if within {
		p.rows, err = strconv.Atoi(rows)
	}
	return p, err
}

// Open begins with the rows of the table, or goes on from a position.
func (s *stream) Open(ctx context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	if split.ID != theSplit {
		return nil, errs.New(errs.State, "open", "%q is no part of the table %s", split.ID, s.table)
	}
	rows, err := newColumnReader(s.fields)
	if err != nil {
		return nil, err
	}
	r := &reader{s: s, rows: rows, news: make(chan struct{}, 1)}
	doing := "changes of the table " + s.table.String() + " of %s cannot be read"
	switch {
	case from == "":
		err = s.db.retry(ctx, openAttempts, "open", doing, func(ctx context.Context, _ int) error { return r.begin(ctx) })
	case strings.HasPrefix(string(from), firstRead):
		// AIDEV-NOTE: what the table was is gone with the connection that saw it. The rows that were read are in no checkpoint, since all of them
		// are one transaction; so a run that starts again begins again.
		return nil, errs.New(errs.Source, "open", "the connection to %s was lost while the table %s was read for the first time", s.db, s.table).WithHint("start again; it begins at the beginning")
	default:
		err = s.db.retry(ctx, openAttempts, "open", doing, func(ctx context.Context, _ int) error { return r.goOn(ctx, from) })
	}
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	s.mu.Lock()
	s.opened, s.reader = true, r
	s.mu.Unlock()
	return r, nil
}

// Acknowledge tells the server that it may forget what a durable checkpoint holds.
func (s *stream) Acknowledge(ctx context.Context, upTo map[string]flow.Position) error {
	at, ok := upTo[theSplit]
	if !ok || at == "" || s.slot == "" {
		return nil
	}
	p, err := parsePlace(at)
	if err != nil {
		return errs.New(errs.State, "acknowledge", "the checkpoint's position: %w", err)
	}
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	if !kept {
		// AIDEV-NOTE: the checkpoint is durable before its slot has its name. Whoever restores it in between finds the other one (keptSlot).
		if _, err := ask(ctx, s.db, "acknowledge", "the replication slot "+s.slot+" of %s cannot be made", func(ctx context.Context, q *pgconn.PgConn) (struct{}, error) {
			state, err := s.db.slot(ctx, q, s.slot)
			if err == nil && !state.exists {
				err = s.keep(ctx, q)
			}
			return struct{}{}, err
		}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.kept, s.acked = true, max(s.acked, p.lsn)
	reader := s.reader
	if reader != nil {
		reader.confirm(s.acked)
	}
	s.mu.Unlock()
	if reader == nil && !kept { // it has ended, and goes over to no other slot any more
		return s.dropNew(ctx)
	}
	return nil
}

func (s *stream) temporary(conn *pgconn.PgConn) string {
	return "riverbed_" + strconv.FormatUint(uint64(conn.PID()), 10) // the process is the connection's own
}
