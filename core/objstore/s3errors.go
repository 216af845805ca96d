package objstore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/riverbed/riverbed/core/errs"
)

var retryables = retry.IsErrorRetryables(retry.DefaultRetryables)

// transient reports whether another attempt may go better.
func transient(err error) bool {
	var network net.Error
	var api smithy.APIError
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &api) && api.ErrorCode() == "ConditionalRequestConflict": // two writers at once: one of them must look again
		return true
	case retryables.IsErrorRetryable(err) == aws.TrueTernary:
		return true
	case errors.As(err, &network) && network.Timeout():
		return true
	}
	for _, e := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// code is the service's word for what is wrong, and the HTTP status; a HEAD has no other.
func code(err error) (word string, status int) {
	var api smithy.APIError
	if errors.As(err, &api) {
		word = api.ErrorCode()
	}
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.Response != nil {
		status = resp.HTTPStatusCode()
	}
	return word, status
}

// fail says what is wrong with an operation on a name, and what helps. No secret is in the SDK's errors but in what signing is told,
// so only the service's words are kept, and not the request.
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
	case word == "PermanentRedirect" || word == "AuthorizationHeaderMalformed" || word == "IllegalLocationConstraintException" || status == http.StatusMovedPermanently:
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
		return errs.New(errs.Source, op, "cannot %s %q: %s does not answer as it should, after %d attempts: %s", op, url, s.endpoint, s3Attempts, brief(err)).
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
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.Response != nil {
		return resp.Response.Header.Get("X-Amz-Bucket-Region")
	}
	return ""
}

// brief is the innermost cause: the layers around it repeat the request.
func brief(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		if api.ErrorMessage() == "" {
			return api.ErrorCode()
		}
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
		var op *net.OpError
		if o, ok := err.(*net.OpError); ok {
			op = o
			return op.Error()
		}
	}
	return err.Error()
}
