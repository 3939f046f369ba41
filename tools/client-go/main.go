// informers puts client-go to work on the server of a kubeconfig: shared informers, patches, finalizers, a
// relist after 410, the event recorder, dynamic informers of a custom kind. It knows nothing about which server it is talking to.
//
// Every check that holds prints a line; the first that does not ends the program. The environment variable
// KUBE_FEATURE_WatchListClient decides whether informers ask for streaming lists.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	// The longest wait for anything; generous, for a machine that does other things too.
	patience = 60 * time.Second
	lookAt   = 20 * time.Millisecond
	// The shortest resync that shared informers accept.
	resync    = time.Second
	namespace = "default"
)

// checker prints what held and stops at what did not.
type checker struct{ passed int }

func (c *checker) ok(format string, args ...any) {
	c.passed++
	fmt.Printf("ok %s\n", fmt.Sprintf(format, args...))
}

// must ends the program when something that no check is about has failed.
func must(err error, format string, args ...any) {
	if err != nil {
		fail("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "FAILED %s\n", fmt.Sprintf(format, args...))
	os.Exit(1)
}

// eventually asks until there is nothing to complain about.
func eventually(what string, complaint func() error) {
	deadline := time.Now().Add(patience)
	for {
		err := complaint()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			fail("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(lookAt)
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "where the server is and who asks")
	flag.Parse()
	// The reflectors say on standard error that a watch was cut, which is what we do to them.
	klog.SetOutput(os.Stderr)

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err, "kubeconfig %q", *kubeconfig)
	config.QPS = -1
	plain, err := kubernetes.NewForConfig(config)
	must(err, "client")
	ungated := rest.CopyConfig(config)
	gate := newGate()
	config.Wrap(gate.wrap)
	gated, err := kubernetes.NewForConfig(config)
	must(err, "client")

	// Every single request has its deadline too; only the informers' watches run for as long as the program.
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	factory := informers.NewSharedInformerFactory(gated, resync)
	nodes := &subject[*corev1.Node]{
		name: "nodes", client: plain.CoreV1().Nodes(), gate: gate, history: newHistory(),
		informer: factory.Core().V1().Nodes().Informer(), make: makeNode, patches: nodePatches,
		list: func(ctx context.Context, options metav1.ListOptions) ([]*corev1.Node, string, error) {
			list, err := plain.CoreV1().Nodes().List(ctx, options)
			return pointers(list.Items), list.Continue, err
		},
	}
	services := &subject[*corev1.Service]{
		name: "services", client: plain.CoreV1().Services(namespace), gate: gate, history: newHistory(),
		informer: factory.Core().V1().Services().Informer(), make: makeService, patches: servicePatches,
		list: func(ctx context.Context, options metav1.ListOptions) ([]*corev1.Service, string, error) {
			list, err := plain.CoreV1().Services(metav1.NamespaceAll).List(ctx, options)
			return pointers(list.Items), list.Continue, err
		},
	}
	for _, start := range []func() error{nodes.attend, services.attend} {
		must(start(), "event handler")
	}
	factory.Start(ctx.Done())

	check := &checker{}
	streaming := features.FeatureGates().Enabled(features.WatchListClient)
	for _, run := range []func(){
		func() { nodes.run(ctx, check, streaming) },
		func() { services.run(ctx, check, streaming) },
		func() { relists(ctx, check, plain, nodes, services) },
		func() { events(ctx, check, plain, nodes, services) },
		func() { custom(ctx, check, ungated) },
		func() { nodes.clean(ctx, check) },
		func() { services.clean(ctx, check) },
	} {
		run()
	}
	fmt.Printf("%d checks passed\n", check.passed)
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
