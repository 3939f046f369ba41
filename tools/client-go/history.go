package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// history is what an informer said about each object, in the order in which it said it.
type history struct {
	mu      sync.Mutex
	told    map[string][]told
	resyncs map[string]int
}

type told struct {
	what    string // added, updated, deleted, or missed: deleted while nobody was looking
	version string
}

func newHistory() *history { return &history{told: map[string][]told{}, resyncs: map[string]int{}} }

func (h *history) add(name, what, version string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[name] = append(h.told[name], told{what, version})
}

func (h *history) OnAdd(object any, _ bool) {
	meta := object.(metav1.Object)
	h.add(meta.GetName(), "added", meta.GetResourceVersion())
}

func (h *history) OnUpdate(old, object any) {
	before, after := old.(metav1.Object), object.(metav1.Object)
	if before.GetResourceVersion() == after.GetResourceVersion() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.resyncs[after.GetName()]++
		return
	}
	h.add(after.GetName(), "updated", after.GetResourceVersion())
}

func (h *history) OnDelete(object any) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		meta := missed.Obj.(metav1.Object)
		h.add(meta.GetName(), "missed", meta.GetResourceVersion())
		return
	}
	meta := object.(metav1.Object)
	h.add(meta.GetName(), "deleted", meta.GetResourceVersion())
}

func (h *history) of(name string) []told {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.told[name])
}

func (h *history) resynced(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.resyncs[name]
}

// written is every version that our own writes gave an object, and whether it is gone by now.
type written struct {
	versions []string
	gone     bool
}

// compare complains unless the informer told exactly these writes, each once and in order.
func (h *history) compare(name string, want written) error {
	seen := h.of(name)
	var versions []string
	for i, event := range seen {
		expected := "updated"
		if i == 0 {
			expected = "added"
		} else if i == len(seen)-1 && want.gone {
			expected = "deleted"
		}
		if event.what != expected {
			return fmt.Errorf("%s: event %d of %v is not %q", name, i+1, seen, expected)
		}
		if i > 0 && !increases(seen[i-1].version, event.version) {
			return fmt.Errorf("%s: versions do not increase: %v", name, seen)
		}
		if event.what != "deleted" {
			versions = append(versions, event.version)
		}
	}
	if !slices.Equal(versions, want.versions) {
		return fmt.Errorf("%s: written %v, told %v", name, want.versions, seen)
	}
	if want.gone != (len(seen) == len(versions)+1) {
		return fmt.Errorf("%s: its deletion is not told once: %v", name, seen)
	}
	return nil
}

func increases(before, after string) bool {
	a, errA := strconv.ParseUint(before, 10, 64)
	b, errB := strconv.ParseUint(after, 10, 64)
	return errA == nil && errB == nil && a < b
}
