package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// More distinct messages than this about one thing, and the recorder combines them.
const distinct = 10

// events records events as controllers do, and looks at what became of them.
func events(ctx context.Context, check *checker, plain kubernetes.Interface, nodes *subject[*corev1.Node], services *subject[*corev1.Service]) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: plain.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "informers"})

	service := services.create(ctx, "recorded")
	for range 3 {
		recorder.Event(service, corev1.EventTypeNormal, "Repeated", "the same again")
	}
	repeated := expect(ctx, "events: repeated", plain, string(service.UID), func(events []corev1.Event) error {
		if len(events) != 1 || events[0].Count != 3 {
			return fmt.Errorf("not one event with count 3")
		}
		return nil
	})[0]
	check.ok("events: the same event again raises its count by a patch")
	if repeated.Namespace != namespace || repeated.InvolvedObject.Name != "recorded" || repeated.Source.Component != "informers" ||
		repeated.Reason != "Repeated" || repeated.Type != corev1.EventTypeNormal || repeated.LastTimestamp.Before(&repeated.FirstTimestamp) {
		fail("events: not as recorded: %+v", repeated)
	}
	check.ok("events: what was recorded is what is read")

	must(plain.CoreV1().Events(namespace).Delete(ctx, repeated.Name, metav1.DeleteOptions{}), "events: delete")
	recorder.Event(service, corev1.EventTypeNormal, "Repeated", "the same again")
	expect(ctx, "events: deleted", plain, string(service.UID), func(events []corev1.Event) error {
		if len(events) != 1 || events[0].Count != 4 {
			return fmt.Errorf("not one event with count 4")
		}
		return nil
	})
	check.ok("events: an event that is gone is created anew, with its count")

	node := nodes.create(ctx, "recorded")
	for i := range distinct + 3 {
		recorder.Eventf(node, corev1.EventTypeWarning, "Similar", "message %d", i)
	}
	expect(ctx, "events: combined", plain, string(node.UID), func(events []corev1.Event) error {
		combined := 0
		for _, event := range events {
			if strings.HasPrefix(event.Message, "(combined from similar events)") {
				combined++
				if event.Count != 4 {
					return fmt.Errorf("the combined event has count %d", event.Count)
				}
			}
		}
		if combined != 1 || len(events) != distinct {
			return fmt.Errorf("%d events, %d of them combined", len(events), combined)
		}
		return nil
	})
	check.ok("events: similar events are combined; those about a node are in %s", namespace)
}

// expect waits for the events about an object to be right.
func expect(ctx context.Context, what string, plain kubernetes.Interface, uid string, complaint func([]corev1.Event) error) []corev1.Event {
	selector := fields.OneTermEqualSelector("involvedObject.uid", uid).String()
	var found []corev1.Event
	eventually(what, func() error {
		list, err := plain.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return err
		}
		found = list.Items
		if err := complaint(found); err != nil {
			return fmt.Errorf("%w: %+v", err, found)
		}
		return nil
	})
	return found
}
