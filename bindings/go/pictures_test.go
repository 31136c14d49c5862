package cairn_test

import (
	"errors"
	"strings"
	"testing"

	"cairn"
)

func TestPictures(t *testing.T) {
	options := cairn.PictureOptions{Data: "drawings", Width: 8, Height: 8, Most: 20, Seed: 3, Workers: 2, Ahead: 1}
	pictures := must(cairn.OpenPictures(newInstance(t), options))
	defer pictures.Close()
	info := must(pictures.Info())
	if info.Count != 20 || info.Classes != 10 || !info.Texts {
		t.Fatal(info)
	}
	if content := must(pictures.Content()); !strings.HasSuffix(content, "-20") {
		t.Fatal(content)
	}
	to := cairn.PictureBatch{Pixels: make([]float32, 6*192), Labels: make([]int32, 6), Items: make([]uint64, 6)}
	if rows := must(pictures.Batch(3, 6, to)); rows != 2 || to.Labels[2] != -100 {
		t.Fatal(rows, to.Labels)
	}
	if text, name := must(pictures.Text(to.Items[0])), must(pictures.Class(int(to.Labels[0]))); !strings.Contains(text, name) {
		t.Fatal(text, name)
	}
	if _, err := pictures.Batch(0, 7, to); !errors.Is(err, cairn.InvalidArgument) {
		t.Fatal(err)
	}
	options.Data = "folder:/nowhere"
	if _, err := cairn.OpenPictures(newInstance(t), options); !errors.Is(err, cairn.NotFound) {
		t.Fatal(err)
	}
}
