package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// electing marks the context of an election; what client-go does without it, it does to give the Lease back.
type electing struct{}

// recorder is a lock that remembers how many transitions the Lease counted when somebody held it.
type recorder struct {
	resourcelock.Interface
	// Called before the Lease is given back; false if it is not to be. client-go calls OnStoppedLeading only
	// afterwards, which is seconds too late when the server cannot be reached.
	releasing func() bool
	mutex     sync.Mutex
	counts    map[string]int
}

func newRecorder(lock resourcelock.Interface) *recorder {
	return &recorder{Interface: lock, releasing: func() bool { return true }, counts: map[string]int{}}
}

func (r *recorder) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	release := ctx.Value(electing{}) == nil
	if release && !r.releasing() {
		return nil, nil, errLost
	}
	record, raw, err := r.Interface.Get(ctx)
	if err == nil {
		r.saw(*record)
		// client-go goes by what it saw last, and would give back what is somebody else's by now.
		if release && record.HolderIdentity != r.Identity() {
			return nil, nil, errLost
		}
	}
	return record, raw, err
}

func (r *recorder) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := r.Interface.Create(ctx, record)
	if err == nil {
		r.saw(record)
	}
	return err
}

func (r *recorder) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := r.Interface.Update(ctx, record)
	if err == nil {
		r.saw(record)
	}
	return err
}

func (r *recorder) saw(record resourcelock.LeaderElectionRecord) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.counts[record.HolderIdentity] = record.LeaderTransitions
}

func (r *recorder) transitions(holder string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.counts[holder]
}

var errLost = errors.New("the claim is lost already: there is nothing to give back")

// event is a line of standard output.
type event struct {
	Event       string    `json:"event"`
	Leader      string    `json:"leader"`
	Transitions int       `json:"transitions"`
	At          time.Time `json:"at"`
}

var output sync.Mutex

func say(what, leader string, transitions int) {
	output.Lock()
	defer output.Unlock()
	line := event{Event: what, Leader: leader, Transitions: transitions, At: time.Now().UTC()}
	must(json.NewEncoder(os.Stdout).Encode(line), "standard output")
}
