package postgres

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// reader reads a stream: the rows of the table first, and then transactions.
type reader struct {
	s    *stream
	rows *columnReader
	bad  []flow.BadRow
	news chan struct{} // something was confirmed

	first *firstRows // nil behind the first rows

	repl    *pgconn.PgConn // made the slot; nil once the tap has it
	slot    string
	tap     *tap
	changes *changeReader
	queue   []image // of the last message, not yet among the rows
	next    place   // behind the rows and what is in the tap's past
	given   place   // behind what Read returned
	skip    int     // rows of the next transaction that were returned before the connection was lost
	inTxn   bool
	done    bool  // a bounded stream is at its end
	failed  error // comes behind the rows
	// untouched: no row was ever given, and no checkpoint has a position.
	untouched bool

	mu      sync.Mutex
	flushed pglogrepl.LSN // what the server may forget
}

// firstRows is a read of the table as it was where the slot begins.
type firstRows struct {
	conn   *pgconn.PgConn
	copy   *rowCopy
	ahead  []byte // the next row; nil: none
	values [][]byte
	buf    []byte
	read   int
}

// begin makes the slot and begins to read the rows that stand at its beginning.
func (r *reader) begin(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	if r.repl, err = r.s.db.replication(ctx); err != nil {
		return err
	}
	from, snapshot, err := r.s.beginSlot(ctx, r.repl)
	if err != nil {
		return err
	}
	r.slot = r.s.slot + newSuffix
	if r.s.slot == "" {
		r.slot = r.s.temporary(r.repl)
	}
	r.next, r.flushed = place{lsn: from}, from
	r.s.mu.Lock()
	r.s.kept, r.s.acked = false, 0
	r.s.mu.Unlock()
	f := &firstRows{}
	r.first = f
	if f.conn, err = r.s.db.once(ctx); err != nil {
		return err
	}
	// The snapshot is the server's as long as the connection that made the slot stays as it is; from here on it is this transaction's.
	if err := exec(ctx, f.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT "+literal(snapshot)); err != nil {
		return err
	}
	if f.copy, err = startCopy(ctx, f.conn, r.s.table.columnList(r.s.at), r.s.table.only()); err != nil {
		return err
	}
	more, err := f.advance()
	if err == nil && !more {
		r.given, r.untouched = r.next, true
		r.endFirst()
	}
	return err
}

func (f *firstRows) advance() (bool, error) {
	line, more, err := f.copy.line()
	f.ahead = append(f.ahead[:0], line...)
	return more, err
}

func (r *reader) endFirst() {
	if r.first != nil {
		hangUp(r.first.conn)
		r.first = nil
	}
}

// readFirst returns some of the first rows. They are one transaction: no checkpoint holds a part of them.
func (r *reader) readFirst(ctx context.Context, limit int) (out flow.Rows, err error) {
	f := r.first
	defer f.copy.during(ctx)()
	more := true
	for more && r.rows.n+len(r.bad) < limit {
		if f.values, f.buf, err = copyLine(f.ahead, f.buf, f.values); err != nil {
			return out, r.error("read", err)
		}
		out.Bytes += int64(len(f.ahead))
		f.read++
		if err := r.rows.add(f.values[:len(r.s.fields)]); err != nil {
			r.addBad(firstRead+strconv.Itoa(f.read), f.values, err)
		} else {
			r.rows.weights = append(r.rows.weights, 1)
		}
		if more, err = f.advance(); err != nil {
			e := r.error("read", err)
			e.Transient = false // what the table was cannot be seen again
			return out, e.WithHint("start again; it begins at the beginning")
		}
	}
	if out.TxnOpen = more; more {
		out.Next = flow.Position(firstRead + strconv.Itoa(f.read))
	} else {
		out.Next = flow.Position(r.next.String())
		r.endFirst()
	}
	r.given = r.next
	r.put(&out)
	return out, nil
}

// put hands over the rows.
func (r *reader) put(out *flow.Rows) {
	if r.rows.n > 0 {
		out.Batch = r.rows.take(true)
	}
	out.Bad, r.bad = r.bad, nil
	r.untouched = false
}

func (r *reader) addBad(at string, values [][]byte, err error) {
	var raw []byte
	for i, v := range values {
		if i > 0 {
			raw = append(raw, '\t')
		}
		if v == nil {
			raw = append(raw, `\N`...)
		}
		raw = append(raw, v...)
	}
	r.bad = append(r.bad, flow.BadRow{Source: r.s.name, Split: theSplit, Position: at, Raw: raw, Error: err.Error(), Time: r.s.clock.Now()})
}

func (r *reader) error(op string, err error) *errs.Error {
	return r.s.db.explain(op, "changes of the table "+r.s.table.String()+" of %s cannot be read", err)
}

// goOn continues at a position.
func (r *reader) goOn(ctx context.Context, from flow.Position) error {
	p, err := parsePlace(from)
	if err != nil {
		return errs.New(errs.State, "open", "%w", err)
	}
	if r.s.slot == "" {
		return errs.New(errs.State, "open", "the stream %q has a temporary slot, so no position of it can be read again", r.s.name).WithHint("name one by the option slot")
	}
	r.next, r.given, r.skip = p, p, p.rows
	r.next.rows = 0
	if r.s.end != 0 && p.lsn >= r.s.end {
		r.done = true
		return nil
	}
	r.s.mu.Lock()
	durable := r.s.kept || !r.s.opened
	r.s.mu.Unlock()
	r.slot = r.s.slot
	if !durable {
		r.slot += newSuffix
	}
	return r.attach(ctx, durable)
}

// attach begins to read the slot. durable: a checkpoint has a position of it, and so the slot its own name.
func (r *reader) attach(ctx context.Context, durable bool) error {
	conn, err := r.s.db.once(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if durable {
		if err := r.s.keptSlot(ctx, conn); err != nil {
			return err
		}
		r.s.mu.Lock()
		if r.s.kept = true; !r.s.opened {
			r.s.acked = r.next.lsn
		}
		r.s.mu.Unlock()
	}
	state, err := r.s.db.slot(ctx, conn, r.slot)
	if err != nil {
		return err
	}
	if !state.exists {
		return errs.New(errs.State, "open", "the replication slot %q of %s is gone", r.slot, r.s.db).WithHint("somebody dropped it, or the server was restored without it; start the pipeline anew, without its checkpoints")
	}
	if durable && state.pid != "" {
		// AIDEV-NOTE: who has a checkpoint's position has its lease too, so the one that reads is a process of the past, or our own connection
		// of which the server has not heard that it is gone. A user who may not end it waits for wal_sender_timeout.
		if _, _, err := query(ctx, conn, "SELECT pg_terminate_backend($1::int)", state.pid); err != nil && sqlState(err) != "42501" {
			return err
		}
	}
	r.mu.Lock()
	r.flushed = max(r.flushed, state.flushed)
	r.mu.Unlock()
	if r.repl, err = r.s.db.replication(ctx); err != nil {
		return err
	}
	return r.open(ctx)
}

// open reads the slot from where we are.
func (r *reader) open(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, err := openTap(ctx, r.repl, r.s.clock, r.slot, r.s.publication, r.next.lsn, r.flushed, r.s.wait, r.s.end != 0)
	if err != nil {
		hangUp(r.repl)
		r.repl = nil
		switch sqlState(err) {
		case "55006":
			return r.s.inUse(r.slot, "unknown")
		case "55000":
			return errs.New(errs.State, "open", "the replication slot %q of %s has lost what comes behind our position: %s", r.slot, r.s.db, err.Error()).
				WithHint("the server removed it (max_slot_wal_keep_size); start the pipeline anew, without its checkpoints")
		}
		return err
	}
	r.repl, r.tap, r.inTxn, r.queue, r.changes = nil, t, false, nil, newChangeReader(r.s)
	return nil
}

// again reads the slot anew behind what Read returned.
func (r *reader) again(ctx context.Context) error {
	r.drop()
	r.rows.clear()
	r.bad, r.failed = nil, nil
	r.next, r.skip = r.given, r.given.rows
	r.next.rows = 0
	if r.s.slot == "" {
		return errs.New(errs.Source, "read", "the connection to %s was lost, and with it the temporary slot by which the table %s was followed", r.s.db, r.s.table).WithHint("name a slot that stays by the option slot")
	}
	r.s.mu.Lock()
	kept := r.s.kept
	r.s.mu.Unlock()
	if kept {
		r.slot = r.s.slot
	}
	return r.s.db.retry(ctx, commitAttempts, "read", "changes of the table "+r.s.table.String()+" of %s cannot be read", func(ctx context.Context, _ int) error {
		return r.attach(ctx, kept)
	})
}

// drop forgets the connection.
func (r *reader) drop() {
	r.mu.Lock()
	t := r.tap
	r.tap = nil
	r.mu.Unlock()
	if t != nil {
		t.close()
	}
	hangUp(r.repl)
	r.repl = nil
}

// confirm is called when a durable checkpoint has come.
func (r *reader) confirm(upTo pglogrepl.LSN) {
	r.flush(upTo)
	r.mu.Lock()
	if r.tap != nil {
		r.tap.now()
	}
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Read returns the next rows; those of one transaction may come in several parts.
func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	limit = max(limit, 1)
	if r.first != nil {
		return r.readFirst(ctx, limit)
	}
	if r.s.slot == "" { // nobody can come back for what was given
		r.flush(r.given.lsn)
	}
	var out flow.Rows
	for {
		r.fill(limit)
		n := r.rows.n + len(r.bad)
		switch {
		case n > 0 && (r.done || r.failed != nil || len(r.queue) > 0 || n >= limit && r.inTxn && r.next.rows == 0 || !r.inTxn && (n >= limit || r.tap == nil || len(r.tap.out) == 0)):
			out.TxnOpen = r.inTxn && r.next.rows > 0
			out.Next = flow.Position(r.next.String())
			r.given = r.next
			r.put(&out)
			return out, nil
		case r.failed != nil:
			return flow.Rows{}, r.failed
		case r.done:
			return flow.Rows{}, io.EOF
		case r.s.end != 0 && r.next.lsn >= r.s.end && !r.inTxn:
			r.done = true
			continue
		case r.tap == nil:
			if err := r.start(ctx); err != nil {
				return flow.Rows{}, r.error("read", err)
			}
			continue
		}
		select {
		case m := <-r.tap.out:
			if m.err != nil {
				if err := r.lost(ctx, m.err); err != nil {
					return flow.Rows{}, err
				}
				continue
			}
			out.Bytes += int64(len(m.data))
			if err := r.take(m); err != nil {
				r.failed = err
			}
		case <-r.news:
			if err := r.rename(ctx); err != nil {
				return flow.Rows{}, err
			}
		case <-ctx.Done():
			return flow.Rows{}, ctx.Err()
		}
	}
}

// start reads the slot for the first time, on the connection that made it when that is still there.
func (r *reader) start(ctx context.Context) error {
	if r.repl != nil {
		if err := r.open(ctx); err == nil || r.s.slot == "" {
			return err
		}
	}
	return r.again(ctx)
}

// lost goes on behind a connection that has failed.
func (r *reader) lost(ctx context.Context, cause error) error {
	if e := r.error("read", cause); !e.Transient && sqlState(cause) != "" {
		return e
	}
	return r.again(ctx)
}

// rename goes over to the slot of the checkpoint, once there is one.
func (r *reader) rename(ctx context.Context) error {
	r.s.mu.Lock()
	kept := r.s.kept
	r.s.mu.Unlock()
	if !kept || r.slot == r.s.slot || r.s.slot == "" {
		return nil
	}
	if err := r.again(ctx); err != nil {
		return err
	}
	return r.s.dropNew(ctx)
}

// fill moves what the last message said to the rows, as far as there is room.
func (r *reader) fill(limit int) {
	for len(r.queue) > 0 && r.rows.n+len(r.bad) < limit {
		im := r.queue[0]
		r.queue = r.queue[1:]
		r.next.rows++
		if r.skip > 0 {
			r.skip--
			continue
		}
		err := r.rows.add(im.values)
		switch {
		case err == nil:
			r.rows.weights = append(r.rows.weights, im.weight)
		case im.weight < 0 && r.s.key == nil:
			// The row went to __bad when it came, so it has nothing to take back.
		default:
			r.addBad(r.next.String(), im.values, err)
			if im.gone != nil && r.rows.add(im.gone) == nil { // the row before it does not stand any more
				r.rows.weights = append(r.rows.weights, -1)
			}
		}
	}
}

// take takes a message.
func (r *reader) take(m tapped) error {
	if m.data == nil {
		r.passed(m.behind)
		return nil
	}
	msg, err := pglogrepl.Parse(m.data)
	if err != nil {
		return errs.New(errs.Source, "read", "a message of the log of %s cannot be read: %w", r.s.db, err)
	}
	switch msg := msg.(type) {
	case *pglogrepl.BeginMessage:
		if r.s.end != 0 && msg.FinalLSN >= r.s.end {
			r.done = true
			return nil
		}
		r.inTxn, r.changes.at = true, msg.FinalLSN
	case *pglogrepl.CommitMessage:
		if r.skip > 0 && r.next.rows > 0 {
			return errs.New(errs.State, "read", "the transaction at %s of the log of %s has fewer rows of the table %s than it had", r.changes.at, r.s.db, r.s.table).
				WithHint("this is another database than the position is of; start the pipeline anew, without its checkpoints")
		}
		r.inTxn, r.next = false, place{lsn: msg.TransactionEndLSN}
		r.done = r.s.end != 0 && msg.TransactionEndLSN >= r.s.end
	default:
		r.queue, err = r.changes.images(msg)
		return err
	}
	return nil
}

// passed hears how far the server has read its log.
func (r *reader) passed(behind pglogrepl.LSN) {
	if r.inTxn || r.rows.n > 0 || len(r.bad) > 0 || len(r.queue) > 0 {
		return
	}
	if r.s.end != 0 && behind >= r.s.end {
		r.done = true
	}
	r.s.mu.Lock()
	settled := r.untouched || r.s.kept && r.given.rows == 0 && r.s.acked >= r.given.lsn
	r.s.mu.Unlock()
	// AIDEV-NOTE: all that was sent is in a durable checkpoint, or nothing of the table ever was, so what is before this place is not needed
	// again: the log of other tables may go. A position before it stays good, since the server goes on at the later of both.
	if settled {
		r.flush(behind)
	}
}

// flush lets the server forget what is before a place; it is told by and by.
func (r *reader) flush(upTo pglogrepl.LSN) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flushed = max(r.flushed, upTo); r.tap != nil {
		r.tap.flush(r.flushed)
	}
}

// Close ends the read. A temporary slot ends with it.
func (r *reader) Close() error {
	r.s.mu.Lock()
	if r.s.reader == r {
		r.s.reader = nil
	}
	left := r.s.kept && r.s.slot != "" && r.slot == r.s.slot+newSuffix
	r.s.mu.Unlock()
	r.drop()
	r.endFirst()
	if left { // the checkpoint came, and we did not go over to its slot any more
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		_ = r.s.dropNew(ctx) // otherwise the next run does
	}
	return nil
}

// closeWithin bounds what the end of a read does at the server.
const closeWithin = 5 * time.Second
