package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// recorder is a lock that remembers how many transitions the Lease counted when somebody held it.
type recorder struct {
	resourcelock.Interface
	mutex  sync.Mutex
	counts map[string]int
}

func newRecorder(lock resourcelock.Interface) *recorder {
	return &recorder{Interface: lock, counts: map[string]int{}}
}

func (r *recorder) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := r.Interface.Get(ctx)
	if err == nil {
		r.saw(*record)
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
