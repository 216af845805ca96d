// Package mysql stands in the place of a driver of MySQL, whose licence is none that we link. The SQL catalog of iceberg-go asks of errors whether they are
// MySQL's, and here none is.
//
// Invariant: nobody makes an error of this type.
package mysql

// MySQLError is the error of a server.
type MySQLError struct {
	Number  uint16
	Message string
}

func (e *MySQLError) Error() string { return e.Message }
