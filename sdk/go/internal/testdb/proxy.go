package testdb

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A Cut is where a connection breaks.
type Cut int32

const (
	// Nowhere: what is sent arrives.
	Nowhere Cut = iota
	// Before the server hears of the commit.
	Before
	// Behind the commit, before the client hears of it.
	Behind
)

// How long the server is given to commit.
const committing = 100 * time.Millisecond

// A Proxy is a way to the server that breaks at a commit.
type Proxy struct {
	listener net.Listener
	server   string
	cut      atomic.Int32
	closes   atomic.Bool
}

// NewProxy listens in front of a database.
func NewProxy(t testing.TB, database *Database) *Proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	p := &Proxy{listener: listener, server: database.Address()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	return p
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut breaks the connection that commits next; if it is the last, nobody is let through afterwards.
func (p *Proxy) Cut(where Cut, last bool) {
	p.closes.Store(last)
	p.cut.Store(int32(where))
}

// WasCut says whether a connection was broken since.
func (p *Proxy) WasCut() bool { return Cut(p.cut.Load()) == Nowhere }

func (p *Proxy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	var mute atomic.Bool
	go func() {
		defer client.Close()
		copyWhile(client, server, func([]byte) bool { return !mute.Load() })
	}()
	copyWhile(server, client, func(sent []byte) bool {
		if !bytes.Contains(bytes.ToLower(sent), []byte("commit")) {
			return true
		}
		where := Cut(p.cut.Swap(int32(Nowhere)))
		if where != Nowhere && p.closes.Load() {
			_ = p.listener.Close()
		}
		if where == Behind {
			mute.Store(true)
			_, _ = server.Write(sent)
			time.Sleep(committing)
		}
		return where == Nowhere
	})
}

func copyWhile(to, from net.Conn, passes func([]byte) bool) {
	buffer := make([]byte, 1<<16)
	for {
		read, err := from.Read(buffer)
		if err != nil || !passes(buffer[:read]) {
			return
		}
		if _, err := to.Write(buffer[:read]); err != nil {
			return
		}
	}
}
