package main

import (
	"context"
	"errors"
	"testing"

	"cairn"
)

func TestTheExampleRunsToItsEnd(t *testing.T) {
	if err := run(context.Background(), t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestTheExampleEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := run(ctx, t.TempDir()); !errors.Is(err, cairn.Cancelled) {
		t.Error(err)
	}
}
