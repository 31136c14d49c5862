package cairn

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
)

// cancellable makes a call that runs a session, and cancels the session when the context ends. late: the cancel came, and the
// call did not use it up; it would stop the next run, so that the caller must use it up.
func cancellable(ctx context.Context, session *C.cairn_session_t, call func(*C.cairn_error_t) C.cairn_status_t,
	hooks []*hook) (late bool, err error) {
	if ctx.Done() == nil {
		return false, capture(call, hooks)
	}
	if ctx.Err() != nil {
		return false, stopped(ctx, "the context had ended before the run began; nothing was changed")
	}
	over, asked := make(chan struct{}), make(chan bool)
	go func() {
		select {
		case <-ctx.Done():
			C.cairn_session_cancel(session)
			asked <- true
		case <-over:
			asked <- false
		}
	}()
	err = capture(call, hooks)
	close(over)
	if !<-asked {
		return false, err
	}
	var own *Error
	if errors.As(err, &own) && own.Status == Cancelled {
		own.cause = ctx.Err()
		return false, err
	}
	return true, err
}
