package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// relists cuts the informers off, first for a moment, then for so long that the server has forgotten where
// they were.
func relists(ctx context.Context, check *checker, plain kubernetes.Interface, nodes *subject[*corev1.Node], services *subject[*corev1.Service]) {
	nodes.resumes(ctx, check)
	services.resumes(ctx, check)
	nodes.relists(ctx, check, plain)
	services.relists(ctx, check, plain)
}

// resumes: a watch that was cut goes on where it was, without a new list.
func (s *subject[T]) resumes(ctx context.Context, check *checker) {
	lists, watches := s.lists(), s.gate.asked(s.name, "watch")
	want := written{versions: []string{s.create(ctx, "resumed").GetResourceVersion()}}
	s.told("resumed", want)
	s.gate.close(s.name)
	for _, step := range []string{"1", "2", "3"} {
		want.versions = append(want.versions, s.mark(ctx, "resumed", step))
	}
	s.gate.open(s.name, false)
	s.told("resumed", want)
	if s.lists() != lists || s.gate.asked(s.name, "watch") <= watches {
		fail("%s: after a cut, %d lists and %d watches more", s.name, s.lists()-lists, s.gate.asked(s.name, "watch")-watches)
	}
	s.delete(ctx, "resumed")
	want.gone = true
	s.told("resumed", want)
	check.ok("%s: a watch that was cut resumes; nothing is lost or told twice", s.name)
}

// relists: a watch from a version that is forgotten is answered with 410, and a list repairs the store.
func (s *subject[T]) relists(ctx context.Context, check *checker, plain kubernetes.Interface) {
	lists, gone := s.lists(), s.gate.asked(s.name, "gone")
	s.create(ctx, "changed")
	s.create(ctx, "removed")
	eventually(s.name+": before the gap", func() error {
		if len(s.history.of("changed")) != 1 || len(s.history.of("removed")) != 1 {
			return fmt.Errorf("not told yet")
		}
		return nil
	})
	s.gate.close(s.name)
	s.mark(ctx, "changed", "1")
	last := s.mark(ctx, "changed", "2")
	s.delete(ctx, "removed")
	appeared := s.create(ctx, "appeared").GetResourceVersion()
	forget(ctx, plain)
	s.gate.open(s.name, true)

	eventually(s.name+": after the gap", func() error {
		for name, want := range map[string]told{
			"changed": {"updated", last}, "appeared": {"added", appeared}, "removed": {what: "missed"},
		} {
			history := s.history.of(name)
			if len(history) == 0 {
				return fmt.Errorf("%s: nothing told", name)
			}
			newest := history[len(history)-1]
			if newest.what != want.what || (want.version != "" && newest.version != want.version) {
				return fmt.Errorf("%s: told %v, not %v", name, history, want)
			}
		}
		return nil
	})
	if s.gate.asked(s.name, "gone") <= gone {
		fail("%s: a watch from a forgotten version was not answered with 410", s.name)
	}
	check.ok("%s: a watch from a forgotten version is answered with 410", s.name)
	if s.lists() <= lists {
		fail("%s: no relist after 410", s.name)
	}
	s.agrees(ctx)
	check.ok("%s: a relist tells what is new, what changed and what was missed", s.name)
	s.delete(ctx, "changed")
	s.delete(ctx, "appeared")
	s.agrees(ctx)
	check.ok("%s: and the watch goes on from there", s.name)
}

func (s *subject[T]) lists() int {
	return s.gate.asked(s.name, "list") + s.gate.asked(s.name, "streaming list")
}

// mark changes an object and says its new version.
func (s *subject[T]) mark(ctx context.Context, name, step string) string {
	body := fmt.Sprintf(`{"metadata":{"annotations":{"step":%q}}}`, step)
	got, err := s.client.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	must(err, "%s: mark %s", s.name, name)
	return got.GetResourceVersion()
}

// forget asks a simulated server to forget its past. A real one knows no such request; it has forgotten what
// was before its own start.
func forget(ctx context.Context, plain kubernetes.Interface) {
	err := plain.CoreV1().RESTClient().Post().AbsPath("/_sim/faults").Body([]byte(`{"compact":true}`)).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		must(err, "forget")
	}
}
