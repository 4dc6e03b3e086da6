// Package billfold signs the requests of the generated clients of a Billfold bank, and sends them until they are answered.
package billfold

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const attempts = 4

// A scheme proves who sends a request. It proves each attempt anew; refused is the answer to the last one, if there was one.
type scheme interface {
	keyHeader() string
	prove(request *http.Request, body []byte, refused *http.Response) error
}

// send sends a request under one idempotency key. The whole answer is read here: one that is cut off is asked for again.
func send(client *http.Client, by scheme, request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	if request.Header.Get(by.keyHeader()) == "" && request.Method != http.MethodGet {
		request.Header.Set(by.keyHeader(), newID())
	}
	var refused *http.Response
	for attempt, wait := 1, 500*time.Millisecond; ; attempt, wait = attempt+1, 2*wait {
		again := request.Clone(request.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if err := by.prove(again, body, refused); err != nil {
			return nil, err
		}
		answer, err := client.Do(again)
		if err == nil {
			if err = buffer(answer); err != nil {
				answer = nil
			}
		}
		if attempt == attempts || (err == nil && !mayRepeat(answer, refused)) {
			return answer, err
		}
		refused = answer
		if err == nil {
			if answer.StatusCode == http.StatusUnauthorized {
				continue
			}
			if seconds, e := strconv.Atoi(answer.Header.Get("Retry-After")); e == nil {
				wait = time.Duration(seconds) * time.Second
			}
		}
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-time.After(wait):
		}
	}
}

// buffer reads an answer to its end, unless it is a stream of events.
func buffer(answer *http.Response) error {
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return err
}

// mayRepeat tells whether the same request may succeed later: the bank says so, a proxy by its status. A refused token or
// nonce is renewed once.
func mayRepeat(answer, refused *http.Response) bool {
	if answer.StatusCode == http.StatusUnauthorized {
		wasRefused := refused != nil && refused.StatusCode == http.StatusUnauthorized
		return !wasRefused && answer.Header.Get("WWW-Authenticate") != ""
	}
	if answer.StatusCode < http.StatusBadRequest {
		return false
	}
	content, _ := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(content))
	var problem struct{ Retryable *bool }
	if json.Unmarshal(content, &problem) == nil && problem.Retryable != nil {
		return *problem.Retryable
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func newID() string {
	var id [16]byte
	rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
