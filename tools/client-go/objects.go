package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

const finalizer = "cloudberth.dev/informers"

// ours marks what this program made.
var ours = map[string]string{"made-by": "informers"}

type object interface {
	metav1.Object
	comparable
}

// client is what the typed clients of nodes and services have in common.
type client[T object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

// subject is one kind of object, the informer that follows it, and what that informer said.
type subject[T object] struct {
	name     string
	client   client[T]
	list     func(context.Context, metav1.ListOptions) ([]T, string, error)
	make     func(metav1.ObjectMeta) T
	patches  []patch[T]
	informer cache.SharedIndexInformer
	history  *history
	gate     *gate
}

type patch[T object] struct {
	name        string
	kind        types.PatchType
	body        string
	subresource []string
	holds       func(T) bool
}

func makeNode(meta metav1.ObjectMeta) *corev1.Node { return &corev1.Node{ObjectMeta: meta} }

func makeService(meta metav1.ObjectMeta) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
}

func labelled[T object](o T) bool {
	return o.GetLabels()["json"] == "yes" && o.GetLabels()["made-by"] != ""
}
func annotated[T object](o T) bool  { return o.GetAnnotations()["merge"] == "yes" }
func unlabelled[T object](o T) bool { return o.GetLabels()["json"] == "" && annotated(o) }

func commonPatches[T object]() []patch[T] {
	return []patch[T]{
		{"JSON patch", types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/json","value":"yes"}]`, nil, labelled[T]},
		{"merge patch", types.MergePatchType, `{"metadata":{"annotations":{"merge":"yes"}}}`, nil, annotated[T]},
		{"merge patch with null", types.MergePatchType, `{"metadata":{"labels":{"json":null}}}`, nil, unlabelled[T]},
	}
}

var nodePatches = append(commonPatches[*corev1.Node](),
	patch[*corev1.Node]{"strategic merge patch of a subresource", types.StrategicMergePatchType,
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, []string{"status"},
		func(n *corev1.Node) bool { return len(n.Status.Conditions) == 1 }},
	patch[*corev1.Node]{"strategic merge patch by key", types.StrategicMergePatchType,
		`{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"NetworkUnavailable","status":"True"}]}}`,
		[]string{"status"},
		func(n *corev1.Node) bool {
			status := map[corev1.NodeConditionType]corev1.ConditionStatus{}
			for _, condition := range n.Status.Conditions {
				status[condition.Type] = condition.Status
			}
			return len(n.Status.Conditions) == 2 && status["Ready"] == "False" && status["NetworkUnavailable"] == "True"
		}})

var servicePatches = append(commonPatches[*corev1.Service](),
	patch[*corev1.Service]{"strategic merge patch of a subresource", types.StrategicMergePatchType,
		`{"status":{"loadBalancer":{"ingress":[]},"conditions":[{"type":"Told","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
		[]string{"status"},
		func(s *corev1.Service) bool { return len(s.Status.Conditions) == 1 }},
	patch[*corev1.Service]{"strategic merge patch by key", types.StrategicMergePatchType,
		`{"spec":{"ports":[{"port":443,"name":"https"}]}}`, nil,
		func(s *corev1.Service) bool {
			return len(s.Spec.Ports) == 2 && s.Spec.Ports[0].NodePort != 0 && s.Spec.Ports[1].NodePort != 0
		}})

// attend makes the informer write its history.
func (s *subject[T]) attend() error {
	_, err := s.informer.AddEventHandler(s.history)
	return err
}

func (s *subject[T]) run(ctx context.Context, check *checker, streaming bool) {
	eventually(s.name+": sync", func() error {
		if !s.informer.HasSynced() {
			return fmt.Errorf("the informer has not synced")
		}
		return nil
	})
	check.ok("%s: the informer syncs", s.name)
	way, other := "list", "streaming list"
	if streaming {
		way, other = other, way
	}
	if got, not := s.gate.asked(s.name, way), s.gate.asked(s.name, other); got != 1 || not != 0 {
		fail("%s: %d by %s and %d by %s instead of 1 and 0", s.name, got, way, not, other)
	}
	check.ok("%s: by one %s", s.name, way)

	s.patched(ctx, check)
	s.generated(ctx, check)
	s.refused(ctx, check)
	s.finalized(ctx, check)
	s.resynced(check)
	s.paged(ctx, check)
	s.agrees(ctx)
	check.ok("%s: the informer's store equals a fresh list", s.name)
}

func (s *subject[T]) create(ctx context.Context, name string, finalizers ...string) T {
	made, err := s.client.Create(ctx, s.make(metav1.ObjectMeta{Name: name, Labels: ours, Finalizers: finalizers}), metav1.CreateOptions{})
	must(err, "%s: create %s", s.name, name)
	return made
}

func (s *subject[T]) delete(ctx context.Context, name string) {
	must(s.client.Delete(ctx, name, metav1.DeleteOptions{}), "%s: delete %s", s.name, name)
}

// told waits until the informer has told exactly these writes.
func (s *subject[T]) told(name string, want written) {
	eventually(s.name+": history", func() error { return s.history.compare(name, want) })
}

func (s *subject[T]) patched(ctx context.Context, check *checker) {
	name := "patched"
	want := written{versions: []string{s.create(ctx, name).GetResourceVersion()}}
	for _, patch := range s.patches {
		got, err := s.client.Patch(ctx, name, patch.kind, []byte(patch.body), metav1.PatchOptions{}, patch.subresource...)
		must(err, "%s: %s", s.name, patch.name)
		if !patch.holds(got) {
			fail("%s: %s: the answer is not as patched: %+v", s.name, patch.name, got)
		}
		want.versions = append(want.versions, got.GetResourceVersion())
		check.ok("%s: %s", s.name, patch.name)
	}
	s.told(name, want)
	again, err := s.client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"merge":"yes"}}}`), metav1.PatchOptions{})
	must(err, "%s: patch again", s.name)
	if again.GetResourceVersion() != want.versions[len(want.versions)-1] {
		fail("%s: a patch that changes nothing made a new version: %v, then %s", s.name, want.versions, again.GetResourceVersion())
	}
	check.ok("%s: a patch that changes nothing makes no version", s.name)
	s.delete(ctx, name)
	want.gone = true
	s.told(name, want)
	check.ok("%s: every write was told once and in order", s.name)
}

func (s *subject[T]) generated(ctx context.Context, check *checker) {
	names := map[string]bool{}
	for range 5 {
		made, err := s.client.Create(ctx, s.make(metav1.ObjectMeta{GenerateName: "generated-", Labels: ours}), metav1.CreateOptions{})
		must(err, "%s: generateName", s.name)
		if !strings.HasPrefix(made.GetName(), "generated-") || len(made.GetName()) != len("generated-")+5 {
			fail("%s: a generated name is %q", s.name, made.GetName())
		}
		names[made.GetName()] = true
		s.told(made.GetName(), written{versions: []string{made.GetResourceVersion()}})
	}
	if len(names) != 5 {
		fail("%s: generated names are not unique: %v", s.name, names)
	}
	check.ok("%s: generated names", s.name)
}

func (s *subject[T]) refused(ctx context.Context, check *checker) {
	first := s.create(ctx, "refused")
	want := written{versions: []string{first.GetResourceVersion()}}
	_, err := s.client.Create(ctx, s.make(metav1.ObjectMeta{Name: "refused"}), metav1.CreateOptions{})
	s.is(check, "a second of the same name already exists", err, apierrors.IsAlreadyExists)
	_, err = s.client.Create(ctx, s.make(metav1.ObjectMeta{Name: "Not_A_Name"}), metav1.CreateOptions{})
	s.is(check, "a name that is none is invalid", err, apierrors.IsInvalid)
	_, err = s.client.Get(ctx, "not-there", metav1.GetOptions{})
	s.is(check, "what is not there is not found", err, apierrors.IsNotFound)

	current, err := s.client.Get(ctx, "refused", metav1.GetOptions{})
	must(err, "%s: get", s.name)
	current.SetAnnotations(map[string]string{"writer": "first"})
	updated, err := s.client.Update(ctx, current, metav1.UpdateOptions{})
	must(err, "%s: update", s.name)
	want.versions = append(want.versions, updated.GetResourceVersion())
	current.SetAnnotations(map[string]string{"writer": "second"})
	_, err = s.client.Update(ctx, current, metav1.UpdateOptions{})
	s.is(check, "an update of an old version is a conflict", err, apierrors.IsConflict)
	other := types.UID("00000000-0000-4000-8000-000000000000")
	err = s.client.Delete(ctx, "refused", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	s.is(check, "a deletion of another one of that name is a conflict", err, apierrors.IsConflict)

	s.delete(ctx, "refused")
	want.gone = true
	s.told("refused", want)
	check.ok("%s: what was refused was never told", s.name)
}

func (s *subject[T]) is(check *checker, what string, err error, kind func(error) bool) {
	if err == nil || !kind(err) {
		fail("%s: %s: got %v", s.name, what, err)
	}
	check.ok("%s: %s", s.name, what)
}

func (s *subject[T]) finalized(ctx context.Context, check *checker) {
	name := "finalized"
	want := written{versions: []string{s.create(ctx, name, finalizer).GetResourceVersion()}}
	s.delete(ctx, name)
	waiting, err := s.client.Get(ctx, name, metav1.GetOptions{})
	must(err, "%s: get %s", s.name, name)
	if waiting.GetDeletionTimestamp() == nil {
		fail("%s: no deletionTimestamp after a deletion with a finalizer: %+v", s.name, waiting)
	}
	want.versions = append(want.versions, waiting.GetResourceVersion())
	s.told(name, want)
	check.ok("%s: a finalizer holds a deletion up", s.name)
	_, err = s.client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["cloudberth.dev/informers","cloudberth.dev/new"]}}`), metav1.PatchOptions{})
	s.is(check, "no new finalizer on what is being deleted", err, apierrors.IsInvalid)
	_, err = s.client.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["cloudberth.dev/informers"]}}`), metav1.PatchOptions{})
	must(err, "%s: remove the finalizer", s.name)
	want.gone = true
	s.told(name, want)
	if _, err := s.client.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		fail("%s: %s is still there without its finalizer: %v", s.name, name, err)
	}
	check.ok("%s: and its removal completes it", s.name)
}

// resynced waits for the informer to tell everything again out of its own store.
func (s *subject[T]) resynced(check *checker) {
	asked := s.gate.asked(s.name, "list") + s.gate.asked(s.name, "streaming list")
	before := map[string]int{}
	for _, held := range s.held() {
		before[held.GetName()] = s.history.resynced(held.GetName())
	}
	eventually(s.name+": resync", func() error {
		for name, count := range before {
			if s.history.resynced(name) <= count {
				return fmt.Errorf("%s was not told again", name)
			}
		}
		return nil
	})
	if now := s.gate.asked(s.name, "list") + s.gate.asked(s.name, "streaming list"); now != asked {
		fail("%s: a resync asked the server: %d lists instead of %d", s.name, now, asked)
	}
	check.ok("%s: a resync tells everything again and asks nothing", s.name)
}

func (s *subject[T]) paged(ctx context.Context, check *checker) {
	whole := s.fresh(ctx)
	var pages []T
	options := metav1.ListOptions{Limit: 2}
	for {
		page, next, err := s.list(ctx, options)
		must(err, "%s: page", s.name)
		if len(page) > 2 {
			fail("%s: a page of %d instead of 2", s.name, len(page))
		}
		pages = append(pages, page...)
		if next == "" {
			break
		}
		options.Continue = next
	}
	if err := same(pages, whole); err != nil {
		fail("%s: pages: %v", s.name, err)
	}
	check.ok("%s: pages add up to the whole", s.name)
	some, _, err := s.list(ctx, metav1.ListOptions{LabelSelector: "made-by=informers,json!=yes"})
	must(err, "%s: selector", s.name)
	if len(some) != 5 {
		fail("%s: %d selected instead of 5", s.name, len(some))
	}
	check.ok("%s: a label selector", s.name)
}

func (s *subject[T]) held() []T {
	var held []T
	for _, item := range s.informer.GetStore().List() {
		held = append(held, item.(T))
	}
	return held
}

func (s *subject[T]) fresh(ctx context.Context) []T {
	items, _, err := s.list(ctx, metav1.ListOptions{})
	must(err, "%s: list", s.name)
	return items
}

// agrees waits until the informer's store and a fresh list are equal in every field.
func (s *subject[T]) agrees(ctx context.Context) {
	eventually(s.name+": store", func() error { return same(s.held(), s.fresh(ctx)) })
}

func same[T object](got, want []T) error {
	key := func(o T) string { return o.GetNamespace() + "/" + o.GetName() }
	for _, all := range [][]T{got, want} {
		sort.Slice(all, func(i, j int) bool { return key(all[i]) < key(all[j]) })
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			return fmt.Errorf("%d objects instead of %d", len(got), len(want))
		}
		if !equality.Semantic.DeepEqual(got[i], want[i]) {
			return fmt.Errorf("%s is not %s, or differs:\n%+v\n%+v", key(got[i]), key(want[i]), got[i], want[i])
		}
	}
	return nil
}

// clean removes what is left of ours.
func (s *subject[T]) clean(ctx context.Context, check *checker) {
	left, _, err := s.list(ctx, metav1.ListOptions{LabelSelector: "made-by=informers"})
	must(err, "%s: list", s.name)
	for _, item := range left {
		s.delete(ctx, item.GetName())
	}
	eventually(s.name+": clean", func() error {
		for _, held := range s.held() {
			if held.GetLabels()["made-by"] == "informers" {
				return fmt.Errorf("%s is still in the store", held.GetName())
			}
		}
		return nil
	})
	s.agrees(ctx)
	check.ok("%s: everything is gone again, and the informer knows", s.name)
}
