package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// transient reports whether another attempt may go better.
func transient(err error) bool {
	var refused *answer
	if errors.As(err, &refused) {
		switch refused.Code {
		case "InternalError", "ServiceUnavailable", "RequestTimeout", "SlowDown", "Throttling", "ThrottlingException", "RequestThrottled", "RequestLimitExceeded", "BandwidthLimitExceeded",
			"ConditionalRequestConflict", "OperationAborted": // two writers at once: one of them must look again
			return true
		}
		switch refused.Status {
		case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
			return true
		}
		return false
	}
	var network net.Error
	var unknown *net.DNSError
	switch {
	case errors.Is(err, context.Canceled), errors.As(err, &unknown) && unknown.IsNotFound:
		return false
	case errors.As(err, &network) && network.Timeout():
		return true
	}
	for _, e := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH, net.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.As(err, &unknown) // the resolver is away
}

// code is the service's word for what is wrong, and the HTTP status; a HEAD has no other.
func code(err error) (word string, status int) {
	var refused *answer
	if errors.As(err, &refused) {
		return refused.Code, refused.Status
	}
	return "", 0
}

// fail says what is wrong with an operation on a name, and what helps. Of the request nothing is kept but its name: headers hold signatures.
func (s *S3) fail(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	if e := ctx.Err(); e != nil {
		return e
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return known
	}
	bucket, key := split(name)
	url := s.URL(name)
	word, status := code(err)
	switch {
	case word == "NoSuchBucket":
		return errs.New(errs.Source, op, "cannot %s %q: there is no bucket %q at %s", op, url, bucket, s.endpoint).
			WithHint("create the bucket, or check its name and AWS_ENDPOINT_URL")
	case word == "NoSuchKey" || word == "NotFound" || word == "NoSuchUpload" || status == http.StatusNotFound:
		return &fs.PathError{Op: op, Path: url, Err: fs.ErrNotExist}
	case status == http.StatusPreconditionFailed:
		return &fs.PathError{Op: op, Path: url, Err: fs.ErrExist}
	case status == http.StatusBadRequest && regionOf(err) != "" && regionOf(err) != s.region, // a HEAD says no more
		word == "PermanentRedirect" || word == "AuthorizationHeaderMalformed" || word == "IllegalLocationConstraintException" || status == http.StatusMovedPermanently:
		e := errs.New(errs.Source, op, "cannot %s %q: the bucket %q is not in the region %s", op, url, bucket, s.region)
		if region := regionOf(err); region != "" {
			return e.WithHint("set AWS_REGION=%s", region)
		}
		return e.WithHint("set AWS_REGION to the bucket's region")
	case word == "InvalidAccessKeyId" || word == "SignatureDoesNotMatch" || word == "InvalidToken" || word == "ExpiredToken" || word == "ExpiredTokenException":
		return errs.New(errs.Source, op, "cannot %s %q: %s does not accept the credentials (%s)", op, url, s.endpoint, word).
			WithHint("check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN or AWS_PROFILE; those of a session expire")
	case word == "AccessDenied" || word == "Forbidden" || status == http.StatusForbidden:
		return errs.New(errs.Source, op, "cannot %s %q: access denied", op, url).
			WithHint("the credentials in use need %s on the bucket %q%s", permission(op), bucket, below(key))
	case word == "RequestTimeTooSkewed":
		return errs.New(errs.Source, op, "cannot %s %q: the clocks of this machine and of %s differ too much", op, url, s.endpoint).WithHint("set the machine's clock")
	}
	if transient(err) {
		long := fmt.Sprintf("after %d attempts", s3Attempts)
		if p := clock.PatienceIn(ctx); p != nil {
			long = fmt.Sprintf("for %s", p.Limit())
		}
		return errs.New(errs.Source, op, "cannot %s %q: %s does not answer as it should, %s: %s", op, url, s.endpoint, long, brief(err)).
			WithHint("check the network, the service and AWS_ENDPOINT_URL").AsTransient()
	}
	return errs.New(errs.Source, op, "cannot %s %q: %s", op, url, brief(err))
}

// permission is what AWS calls the right that an operation needs.
func permission(op string) string {
	switch op {
	case "list":
		return "s3:ListBucket"
	case "read", "stat":
		return "s3:GetObject and s3:ListBucket"
	case "delete":
		return "s3:DeleteObject"
	case "list uploads of":
		return "s3:ListBucketMultipartUploads"
	case "abort":
		return "s3:AbortMultipartUpload"
	}
	return "s3:PutObject"
}

func below(key string) string {
	if key == "" {
		return ""
	}
	return " for this key"
}

func regionOf(err error) string {
	var refused *answer
	if errors.As(err, &refused) {
		return refused.Region
	}
	return ""
}

// brief is the cause: what is around it repeats the request.
func brief(err error) string {
	var refused *answer
	if errors.As(err, &refused) {
		return refused.Error()
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Error()
	}
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}
