package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// rowCopy is a COPY … TO STDOUT that is read row by row, as fast as its reader wants.
type rowCopy struct {
	conn  *pgconn.PgConn
	ended bool
}

// startCopy begins to read columns of a table, with what stands behind FROM in SQL.
func startCopy(ctx context.Context, conn *pgconn.PgConn, columns []string, from string) (*rowCopy, error) {
	c := &rowCopy{conn: conn}
	conn.Frontend().SendQuery(&pgproto3.Query{String: fmt.Sprintf("COPY (SELECT %s FROM %s) TO STDOUT", quoteAll(columns), from)})
	if err := conn.Frontend().Flush(); err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}
	for {
		m, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *pgproto3.CopyOutResponse:
			return c, nil
		case *pgproto3.ErrorResponse:
			return nil, pgconn.ErrorResponseToPgError(m)
		case *pgproto3.NoticeResponse, *pgproto3.ParameterStatus:
		default:
			return nil, fmt.Errorf("the server answered COPY with %T", m)
		}
	}
}

// line returns the text of the next row, which holds until the next call; false at the end.
func (c *rowCopy) line() (text []byte, more bool, err error) {
	for !c.ended {
		m, err := c.conn.ReceiveMessage(context.Background())
		if err != nil {
			return nil, false, err
		}
		switch m := m.(type) {
		case *pgproto3.CopyData: // one a row
			return m.Data, true, nil
		case *pgproto3.ErrorResponse:
			return nil, false, pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			c.ended = true
		}
	}
	return nil, false, nil
}

// during ends the connection when ctx ends, until the function that it returns is called: cheaper than to watch ctx row by row.
func (c *rowCopy) during(ctx context.Context) func() {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Conn().Close() })
	return func() { stop() }
}

// columnList is the names of some columns of a table.
func (t *table) columnList(at []int) []string {
	out := make([]string, len(at))
	for i, a := range at {
		out[i] = t.columns[a].name
	}
	return out
}

// only is a name for a FROM clause: rows of tables that inherit from it are their own.
func (t *table) only() string {
	if t.kind == 'r' {
		return "ONLY " + t.sql()
	}
	return t.sql()
}
