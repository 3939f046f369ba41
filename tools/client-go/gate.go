package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gate is what stands between the informers and the server: it counts what they ask, and it can cut the one
// of a resource off.
type gate struct {
	mu     sync.Mutex
	shut   map[string]chan struct{} // by resource; closed when the gate opens again
	inside map[int]visit
	next   int
	counts map[string]int
	// The next watch of these resources is sent from a version that every server has forgotten.
	stale map[string]bool
}

// visit is a request that is being answered.
type visit struct {
	resource string
	cut      context.CancelFunc
}

func newGate() *gate {
	return &gate{
		shut: map[string]chan struct{}{}, inside: map[int]visit{}, counts: map[string]int{}, stale: map[string]bool{},
	}
}

func (g *gate) wrap(inner http.RoundTripper) http.RoundTripper { return &gated{g, inner} }

type gated struct {
	*gate
	inner http.RoundTripper
}

func (g *gated) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	resource := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	kind := "list"
	if query.Get("watch") != "" && query.Get("watch") != "false" {
		kind = "watch"
		if query.Get("sendInitialEvents") == "true" {
			kind = "streaming list"
		}
	}
	if err := g.pass(request.Context(), resource); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(request.Context())
	request = request.Clone(ctx)
	if kind == "watch" && g.takeStale(resource) {
		query.Set("resourceVersion", "1")
		request.URL.RawQuery = query.Encode()
	}
	number := g.enter(kind, visit{resource, cancel})
	response, err := g.inner.RoundTrip(request)
	if err != nil {
		g.leave(number)
		return nil, err
	}
	if response.StatusCode == http.StatusGone {
		g.count(resource + " gone")
	}
	gone := func() { g.count(resource + " gone") }
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, gone: gone, closed: func() { g.leave(number) }}
	return response, nil
}

// pass waits until the gate is open for a resource.
func (g *gate) pass(ctx context.Context, resource string) error {
	g.mu.Lock()
	shut := g.shut[resource]
	g.mu.Unlock()
	if shut == nil {
		return nil
	}
	select {
	case <-shut:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close cuts off whoever is inside for a resource and keeps everybody else out.
func (g *gate) close(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut[resource] = make(chan struct{})
	for _, visit := range g.inside {
		if visit.resource == resource {
			visit.cut()
		}
	}
}

// open lets everybody in again. After a long time, the next watch is one from the distant past.
func (g *gate) open(resource string, afterLong bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stale[resource] = afterLong
	close(g.shut[resource])
	delete(g.shut, resource)
}

func (g *gate) takeStale(resource string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	stale := g.stale[resource]
	delete(g.stale, resource)
	return stale
}

func (g *gate) enter(kind string, visit visit) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[visit.resource+" "+kind]++
	g.next++
	g.inside[g.next] = visit
	return g.next
}

func (g *gate) leave(number int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if visit, ok := g.inside[number]; ok {
		visit.cut()
	}
	delete(g.inside, number)
}

func (g *gate) count(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[what]++
}

// asked says how often a resource was asked for in this way.
func (g *gate) asked(resource, kind string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts[fmt.Sprintf("%s %s", resource, kind)]
}

// body looks for a 410 that comes as an event of a watch.
type body struct {
	io.ReadCloser
	ctx    context.Context
	gone   func()
	closed func()
	tail   []byte
}

// The reason that goes with 410; the same bytes in JSON and in protobuf, and in no object of ours.
var goneEvent = []byte(metav1.StatusReasonExpired)

func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	text := append(b.tail, into[:n]...)
	if bytes.Contains(text, goneEvent) {
		b.gone()
		text = nil
	}
	// A mark that is cut in two by the end of a read is found with the next one.
	b.tail = bytes.Clone(text[max(0, len(text)-len(goneEvent)+1):])
	if err != nil && b.ctx.Err() != nil {
		// What was cut looks like a server that went away.
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *body) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}
