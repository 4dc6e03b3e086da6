package billfold

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Customer sends requests of the Customer API as a service user, with a proof of its key (DPoP): give it to
// customer.NewClientWithResponses by WithHTTPClient.
type Customer struct {
	Issuer, ClientID, Kid string
	Key                   *ecdsa.PrivateKey
	HTTP                  *http.Client

	mutex              sync.Mutex
	proof              *ecdsa.PrivateKey
	token              token
	nonce, issuerNonce string
}

// Do sends a request with a token and a new proof.
func (c *Customer) Do(request *http.Request) (*http.Response, error) { return send(c.HTTP, c, request) }

func (c *Customer) keyHeader() string { return "Idempotency-Key" }

func (c *Customer) prove(request *http.Request, _ []byte, refused *http.Response) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	wantsNonce := false
	if isUnauthorized(refused) {
		c.nonce = refused.Header.Get("DPoP-Nonce")
		wantsNonce = strings.Contains(refused.Header.Get("WWW-Authenticate"), "use_dpop_nonce")
	}
	if !c.token.isFresh() || (isUnauthorized(refused) && !wantsNonce) {
		if err := c.renew(); err != nil {
			return err
		}
	}
	address := *request.URL
	address.RawQuery, address.Fragment = "", ""
	proof, err := c.proofOf(request.Method, address.String(), c.nonce, c.token.text)
	request.Header.Set("DPoP", proof)
	request.Header.Set("Authorization", "DPoP "+c.token.text)
	return err
}

// renew gets a token; a second time if the server requires a nonce.
func (c *Customer) renew() error {
	address := c.Issuer + "/api/oauth2/token"
	for again := false; ; again = true {
		text, err := assertion(c.Key, c.ClientID, c.Kid, c.Issuer)
		if err != nil {
			return err
		}
		form := url.Values{
			"grant_type":            {"client_credentials"},
			"client_id":             {c.ClientID},
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			"client_assertion":      {text},
		}
		proof, err := c.proofOf(http.MethodPost, address, c.issuerNonce, "")
		if err != nil {
			return err
		}
		granted, answer, err := requestToken(c.HTTP, address, form, http.Header{"Dpop": {proof}})
		if answer != nil && answer.Header.Get("DPoP-Nonce") != "" {
			c.issuerNonce = answer.Header.Get("DPoP-Nonce")
			if err != nil && !again {
				continue
			}
		}
		c.token = granted
		return err
	}
}

func (c *Customer) proofOf(method, address, nonce, token string) (string, error) {
	if c.proof == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return "", err
		}
		c.proof = key
	}
	claims := map[string]any{"jti": newID(), "htm": method, "htu": address, "iat": time.Now().Unix()}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if token != "" {
		digest := sha256.Sum256([]byte(token))
		claims["ath"] = base64url(digest[:])
	}
	x, y := make([]byte, 32), make([]byte, 32)
	jwk := map[string]string{
		"kty": "EC", "crv": "P-256", "x": base64url(c.proof.X.FillBytes(x)), "y": base64url(c.proof.Y.FillBytes(y)),
	}
	return sign(c.proof, map[string]any{"typ": "dpop+jwt", "jwk": jwk}, claims)
}
