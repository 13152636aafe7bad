package client

// A history is what is known of a request after all its attempts so far. One attempt that may have
// happened makes it doubtful, until somebody who looked at its key says what came of it.
type history struct {
	// Whether the request only reads: then nothing about it is doubtful.
	reads bool
	doubt bool
	// The status of a success that did not arrive whole.
	cut  int
	word word
}

// The last word that was heard, as far as it can be believed.
type word int

const (
	none word = iota
	yes
	no
)

func (h *history) note(ended *attempt) {
	if h.word == yes {
		return
	}
	switch ended.result {
	case success:
		// A server that began one success and sends another contradicts itself.
		if h.cut == 0 || h.cut == ended.status {
			h.word = yes
		} else {
			h.word = h.doubted()
		}
	case notRetained, doubtful, unanswered, inFlight, failed:
		h.word = h.doubted()
	case keyReused:
		h.word = h.refused(true)
	case goneByNow:
		// What came of the key is forgotten, so it cannot settle a doubt.
		h.word = h.refused(false)
	case refused:
		h.word = h.refused(ended.knowsKey)
	case notSent, nothingRan, notNow:
		h.word = none
	}
	if h.cut == 0 {
		h.cut = ended.cut
	}
}

// refused believes a no if there was no doubt, or if it answers the doubt. After half a yes it does not:
// the server contradicts itself.
func (h *history) refused(knowsKey bool) word {
	if h.doubt && !knowsKey || h.cut != 0 {
		return h.doubted()
	}
	h.doubt = false
	return no
}

func (h *history) doubted() word {
	h.doubt = h.doubt || !h.reads
	return none
}

func (h *history) conclusion() Conclusion {
	switch {
	case h.word == yes:
		return Done
	case h.word == no:
		return Refused
	case h.doubt:
		return Unknown
	default:
		return GaveUp
	}
}
