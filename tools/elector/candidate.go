package main

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// candidate is who stands for which Lease, and how.
type candidate struct {
	client                    coordination.CoordinationV1Interface
	namespace, name, identity string
	lease, renew, retry       time.Duration
}

// standing is one candidature. It goes on, through lost claims too, until it is taken back.
type standing struct {
	cancel context.CancelFunc
	claim  *claim
	over   chan struct{}
}

// claim says when leading began and ended, each once.
type claim struct {
	mutex   sync.Mutex
	records *recorder
	leading bool
	// Nothing begins any more.
	closed bool
}

func (c *candidate) config(lock resourcelock.Interface, calls leaderelection.LeaderCallbacks) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: c.lease, RenewDeadline: c.renew, RetryPeriod: c.retry,
		Callbacks: calls, ReleaseOnCancel: true, Name: c.name,
	}
}

func (c *candidate) lock() *recorder {
	return newRecorder(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.namespace, Name: c.name},
		Client:     c.client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.identity},
	})
}

// check tells of durations that do not fit together, before anything is done.
func (c *candidate) check() error {
	nothing := leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}}
	_, err := leaderelection.NewLeaderElector(c.config(c.lock(), nothing))
	return err
}

// stand begins a candidature.
func (c *candidate) stand(ctx context.Context) *standing {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, electing{}, true))
	lock := c.lock()
	s := &standing{cancel: cancel, claim: &claim{records: lock}, over: make(chan struct{})}
	lock.releasing = func() bool {
		s.claim.end(c.identity)
		return s.claim.taken()
	}
	calls := leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) { s.claim.begin(c.identity) },
		OnStoppedLeading: func() { s.claim.end(c.identity) },
		OnNewLeader: func(leader string) {
			if leader != c.identity && leader != "" {
				say("leader", leader, lock.transitions(leader))
			}
		},
	}
	go func() {
		defer close(s.over)
		for ctx.Err() == nil {
			elector, err := leaderelection.NewLeaderElector(c.config(lock, calls))
			must(err, "election")
			elector.Run(ctx)
		}
	}()
	return s
}

// down takes the candidature back and returns when that is done. The end of leading is said first: whoever sees the
// Lease free must not find us leading.
func (s *standing) down() {
	led := s.claim.close()
	s.cancel()
	<-s.over
	if led {
		say("released", s.claim.records.Identity(), s.claim.records.transitions(s.claim.records.Identity()))
	}
}

// begin is called by client-go on a goroutine of its own, which may be late.
func (c *claim) begin(identity string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.closed && !c.leading {
		c.leading = true
		say("started", identity, c.records.transitions(identity))
	}
}

func (c *claim) end(identity string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	led := c.leading
	if led {
		c.leading = false
		say("stopped", identity, c.records.transitions(identity))
	}
	return led
}

// taken says whether the candidature was taken back.
func (c *claim) taken() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.closed
}

func (c *claim) close() bool {
	c.mutex.Lock()
	c.closed = true
	c.mutex.Unlock()
	return c.end(c.records.Identity())
}
