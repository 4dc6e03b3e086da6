package billfold

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Partner sends requests of the Partner API: give it to partner.NewClientWithResponses by WithHTTPClient.
type Partner struct {
	URL, Username, SharedSecret, Kid string
	Key                              *ecdsa.PrivateKey
	HTTP                             *http.Client

	mutex sync.Mutex
	token token
}

// Do sends a request with a token and a signature.
func (p *Partner) Do(request *http.Request) (*http.Response, error) { return send(p.HTTP, p, request) }

func (p *Partner) keyHeader() string { return "X-Service-Idempotency" }

func (p *Partner) prove(request *http.Request, body []byte, refused *http.Response) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if isUnauthorized(refused) || !p.token.isFresh() {
		if err := p.renew(); err != nil {
			return err
		}
	}
	key := request.Header.Get(p.keyHeader())
	if key == "" {
		key = newID()
		request.Header.Set(p.keyHeader(), key)
	}
	mac := hmac.New(sha256.New, []byte(p.SharedSecret))
	mac.Write([]byte(key + request.URL.EscapedPath()))
	mac.Write(body)
	request.Header.Set("X-Service-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	request.Header.Set("Authorization", "Bearer "+p.token.text)
	return nil
}

func (p *Partner) renew() error {
	address := strings.TrimRight(p.URL, "/") + "/token/"
	proof, err := assertion(p.Key, p.Username, p.Kid, address)
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {proof}}
	p.token, _, err = requestToken(p.HTTP, address, form, http.Header{})
	return err
}

func isUnauthorized(answer *http.Response) bool {
	return answer != nil && answer.StatusCode == http.StatusUnauthorized
}
