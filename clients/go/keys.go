package billfold

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ParseKey reads an ES256 key in PEM, PKCS #8.
func ParseKey(text string) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, isEC := parsed.(*ecdsa.PrivateKey)
	if !isEC || key.Curve.Params().BitSize != 256 {
		return nil, errors.New("the key is not of the curve P-256")
	}
	return key, nil
}

// sign returns a JWT, signed with ES256.
func sign(key *ecdsa.PrivateKey, header, claims map[string]any) (string, error) {
	header["alg"] = "ES256"
	first, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	second, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64url(first) + "." + base64url(second)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64url(signature), nil
}

// assertion authenticates a client (RFC 7523) for a minute.
func assertion(key *ecdsa.PrivateKey, client, kid, audience string) (string, error) {
	now := time.Now().Unix()
	claims := map[string]any{"iss": client, "sub": client, "aud": audience, "iat": now, "exp": now + 60, "jti": newID()}
	return sign(key, map[string]any{"typ": "JWT", "kid": kid}, claims)
}

// token is an access token, and when to ask for another.
type token struct {
	text  string
	until time.Time
}

func (t token) isFresh() bool { return t.text != "" && time.Now().Before(t.until) }

// requestToken posts a form to a token endpoint, and returns its status, headers and token.
func requestToken(client *http.Client, address string, form url.Values, header http.Header) (token, *http.Response, error) {
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, nil, err
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(request)
	if err != nil {
		return token{}, nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return token{}, nil, err
	}
	var granted struct {
		Token   string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	if err := json.Unmarshal(content, &granted); err != nil || granted.Token == "" {
		return token{}, answer, fmt.Errorf("no token: %s %.300s", answer.Status, content)
	}
	return token{granted.Token, time.Now().Add(time.Duration(granted.Seconds-30) * time.Second)}, answer, nil
}

func base64url(value []byte) string { return base64.RawURLEncoding.EncodeToString(value) }
