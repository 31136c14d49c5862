package cairn_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn"
)

func TestTokensOfText(t *testing.T) {
	instance := newInstance(t)
	tokenizer, err := cairn.OpenTokenizer(instance, "bytes", "")
	closing(t, tokenizer, err)
	text := "Ein Haufen Steine, \x00\xff und ein Weg."
	tokens := must(tokenizer.Encode(text))
	if len(tokens) != len(text) || must(tokenizer.Vocabulary()) != 256 || must(tokenizer.Decode(tokens)) != text {
		t.Error(tokens)
	}
	if tokens := must(tokenizer.Encode("")); len(tokens) != 0 || must(tokenizer.Decode(nil)) != "" {
		t.Error(tokens)
	}
	if _, err := tokenizer.Decode([]int32{999}); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	folder := t.TempDir()
	book, model := filepath.Join(folder, "book.txt"), filepath.Join(folder, "book.model")
	ok(t, os.WriteFile(book, []byte(strings.Repeat("a pile of stones marks the way back. ", 200)), 0o600))
	if err := cairn.TrainTokenizer(instance, book, 300, model); err != nil {
		t.Fatal(err)
	}
	trained, err := cairn.OpenTokenizer(instance, "bpe", model)
	closing(t, trained, err)
	short := must(trained.Encode("a pile of stones"))
	if len(short) >= 16 || must(trained.Decode(short)) != "a pile of stones" {
		t.Error(short)
	}
	path := filepath.Join(folder, "book.tokens")
	ok(t, tokenizer.WriteTokens(book, path))
	dataset, err := cairn.OpenDataset(instance, path, 16)
	closing(t, dataset, err)
	info := must(dataset.Info())
	if info.Length != 16 || info.Vocabulary != 256 || info.Tokens != 37*200 || info.Windows == 0 {
		t.Errorf("%+v", info)
	}
	inputs, targets := make([]int32, 4*16), make([]int32, 4*16)
	if filled := must(dataset.Batch(1, 0, 4, inputs, targets)); filled != 4 {
		t.Error(filled)
	}
	for i := 0; i < 15; i++ {
		if targets[i] != inputs[i+1] {
			t.Error("targets are not the next tokens")
		}
	}
	if _, err := cairn.OpenDataset(instance, filepath.Join(folder, "none"), 16); !errors.Is(err, cairn.NotFound) {
		t.Error(err)
	}
	if _, err := cairn.OpenTokenizer(instance, "words", ""); err == nil {
		t.Error("a tokenizer of an unknown kind")
	}
}

// Slices that are too short are refused before the library writes into them.
func TestBatchesNeedSlicesOfTheirSize(t *testing.T) {
	dataset, err := cairn.RandomDataset(newInstance(t), 1, 20, 8)
	closing(t, dataset, err)
	right, short := make([]int32, 24), make([]int32, 23)
	for _, pair := range [][2][]int32{{short, right}, {right, short}, {nil, nil}, {right, append(right, 1)}} {
		_, err := dataset.Batch(1, 0, 3, pair[0], pair[1])
		contains(t, err, "INVALID_ARGUMENT", "3 rows of length 8 need 24")
	}
	if _, err := dataset.Batch(1, 0, -1, nil, nil); !errors.Is(err, cairn.InvalidArgument) {
		t.Error(err)
	}
	must(dataset.Batch(1, 0, 3, right, append([]int32{}, right...)))
}
