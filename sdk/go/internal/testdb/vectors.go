package testdb

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Vectors are the cases of a file that all SDKs are held against.
func Vectors[T any](t *testing.T, name string) []T {
	t.Helper()
	folder, err := repository()
	check(t, err)
	text, err := os.ReadFile(filepath.Join(folder, "sdk", "vectors", name))
	check(t, err)
	var file struct{ Cases []T }
	check(t, json.Unmarshal(text, &file))
	if len(file.Cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return file.Cases
}
