package client

import (
	"sync"
	"time"
)

// A budget keeps retries of a server in trouble from being an attack: they are a tenth of the requests, or
// ten a second, whichever is more; a hundred may be saved up.
type budget struct {
	mutex   sync.Mutex
	retries float64
	since   time.Time
}

const (
	retriesSavedMax   = 100
	retriesPerSecond  = 10
	retriesPerRequest = 0.1
)

func (b *budget) deposit() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.refill()
	b.retries = min(b.retries+retriesPerRequest, retriesSavedMax)
}

func (b *budget) withdraw() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.refill()
	if b.retries < 1 {
		return false
	}
	b.retries--
	return true
}

func (b *budget) refill() {
	now := time.Now()
	if b.since.IsZero() {
		b.retries = retriesSavedMax
	} else {
		b.retries = min(b.retries+now.Sub(b.since).Seconds()*retriesPerSecond, retriesSavedMax)
	}
	b.since = now
}
