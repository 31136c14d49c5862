package cairn

import (
	"errors"
	"testing"
)

func TestLibrariesOfAnotherMajorVersionAreRefused(t *testing.T) {
	for _, library := range []uint32{10000, 10203} {
		if err := checkVersion(library, 1); err != nil {
			t.Errorf("%d: %v", library, err)
		}
	}
	for _, library := range []uint32{9900, 20000} {
		if err := checkVersion(library, 1); !errors.Is(err, Unsupported) {
			t.Errorf("%d: %v", library, err)
		}
	}
	t.Log(checkVersion(20103, 1))
}
