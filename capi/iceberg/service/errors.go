package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/errs"
)

// The kinds of errors that an answer names.
const (
	kindAbsent   = "absent"
	kindExists   = "exists"
	kindExpired  = "expired"
	kindSchema   = "schema"
	kindMarker   = "marker"
	kindIO       = "io"
	kindUsage    = "usage"
	kindCanceled = "canceled"
)

// fault is an error whose kind is known where it arose.
type fault struct {
	kind, remedy string
	err          error
}

func faultf(kind, format string, args ...any) *fault {
	return &fault{kind: kind, err: fmt.Errorf(format, args...)}
}

func (f *fault) hint(text string) *fault { f.remedy = text; return f }

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// refusal is the answer that says an error.
func refusal(r meta.Request, err error) meta.Answer {
	a := meta.Answer{Kind: kindOf(err), Transient: transient(err)}
	var f *fault
	if errors.As(err, &f) {
		a.Hint = f.remedy
	}
	var e *errs.Error
	if a.Hint == "" && errors.As(err, &e) {
		a.Hint = e.Hint
	}
	a.Error = conceal(r.Catalog, err.Error())
	if a.Error == "" {
		a.Error = fmt.Sprintf("%T", err)
	}
	a.Hint = conceal(r.Catalog, a.Hint)
	return a
}

func kindOf(err error) string {
	var f *fault
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return kindCanceled
	case errors.As(err, &f):
		return f.kind
	case errors.Is(err, catalog.ErrNoSuchTable), errors.Is(err, catalog.ErrNoSuchNamespace):
		return kindAbsent
	case errors.Is(err, catalog.ErrTableAlreadyExists):
		return kindExists
	case errors.Is(err, iceberg.ErrInvalidArgument), errors.Is(err, catalog.ErrInvalidIdentifier):
		return kindUsage
	case errors.Is(err, iceberg.ErrInvalidSchema), errors.Is(err, iceberg.ErrType), errors.Is(err, iceberg.ErrInvalidPartitionSpec):
		return kindSchema
	}
	return kindIO
}

// transient reports whether trying again may go well. What is not known is taken as such: a commit may be tried as often as one likes.
func transient(err error) bool {
	var f *fault
	var e *errs.Error
	var n net.Error
	switch {
	case errors.As(err, &f):
		return false
	case errors.Is(err, rest.ErrUnauthorized), errors.Is(err, rest.ErrForbidden), errors.Is(err, rest.ErrBadRequest):
		return false
	case errors.Is(err, table.ErrCommitFailed), errors.Is(err, rest.ErrCommitStateUnknown), errors.Is(err, rest.ErrServiceUnavailable), errors.Is(err, rest.ErrServerError):
		return true
	case errors.As(err, &e) && e.Transient, errors.As(err, &n):
		return true
	case strings.Contains(err.Error(), "database is locked"), strings.Contains(err.Error(), "database table is locked"):
		return true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return false
	}
	return false
}

// conceal takes the secrets of a catalog out of a text: errors of drivers and services quote what they were given.
func conceal(c meta.Catalog, text string) string {
	for key, value := range c.Properties {
		if secret(key) && len(value) > 3 {
			text = strings.ReplaceAll(text, value, "***")
			text = strings.ReplaceAll(text, url.QueryEscape(value), "***")
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok && password != "" {
				text = strings.ReplaceAll(text, password, "***")
				text = strings.ReplaceAll(text, url.QueryEscape(password), "***")
			}
		}
		for _, word := range strings.Fields(value) { // host=… password=…
			if _, password, ok := strings.Cut(word, "password="); ok && password != "" {
				text = strings.ReplaceAll(text, strings.Trim(password, "'"), "***")
			}
		}
	}
	return text
}

func secret(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"token", "secret", "password", "credential", "access-key", "authorization", "signature", "jsonkey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}
