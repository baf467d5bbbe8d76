// Command witness is two transparency logs, one of which lies: it asks a witness (c2sp.org/tlog-witness) to cosign what
// golang.org/x/mod signs and proves, and verifies what comes back by Go's own Ed25519 (c2sp.org/tlog-cosignature).
//
// It is started with the witness's URL and vkey, prints the vkeys of its logs, waits for a line that says that they are
// trusted, and then prints one JSON object for each answer.
package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// cosigner verifies cosignature/v1, of which x/mod knows nothing.
type cosigner struct {
	name string
	key  ed25519.PublicKey
	time uint64 // of the last signature that was verified
}

func newCosigner(vkey string) (*cosigner, error) {
	parts := strings.SplitN(vkey, "+", 3)
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(key) != 1+ed25519.PublicKeySize || key[0] != 4 {
		return nil, errors.New("not the vkey of a witness")
	}
	c := &cosigner{name: parts[0], key: key[1:]}
	if fmt.Sprintf("%08x", c.KeyHash()) != parts[1] {
		return nil, errors.New("the key ID is wrong")
	}
	return c, nil
}

func (c *cosigner) Name() string { return c.name }

func (c *cosigner) KeyHash() uint32 {
	sum := sha256.Sum256([]byte(c.name + "\n\x04" + string(c.key)))
	return binary.BigEndian.Uint32(sum[:])
}

func (c *cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	c.time = binary.BigEndian.Uint64(signature)
	message := fmt.Sprintf("cosignature/v1\ntime %d\n%s", c.time, text)
	return ed25519.Verify(c.key, []byte(message), signature[8:])
}

// history is a tree of its own, with the hashes in the order that tlog asks for.
type history []tlog.Hash

func (h history) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		hashes[i] = h[x]
	}
	return hashes, nil
}

// newHistory makes entries that have another text from the entry fork on.
func newHistory(size, fork int64, text string) (h history) {
	for n := int64(0); n < size; n++ {
		record := fmt.Sprint("entry ", n)
		if n >= fork {
			record += text
		}
		hashes, err := tlog.StoredHashes(n, []byte(record), h)
		check(err)
		h = append(h, hashes...)
	}
	return h
}

func (h history) root(size int64) tlog.Hash {
	if size == 0 {
		return sha256.Sum256(nil)
	}
	root, err := tlog.TreeHash(size, h)
	check(err)
	return root
}

func (h history) proof(old, size int64) string {
	if old == 0 || old >= size {
		return ""
	}
	proof, err := tlog.ProveTree(size, old, h)
	check(err)
	lines := ""
	for _, hash := range proof {
		lines += hash.String() + "\n"
	}
	return lines
}

// A signer of checkpoints is a log; what it signs is up to the history.
type signer struct {
	note.Signer
	verifier note.Verifier
	vkey     string
}

func newSigner(name string, seed byte) signer {
	skey, vkey, err := note.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{seed}, 32)), name)
	check(err)
	s, err := note.NewSigner(skey)
	check(err)
	v, err := note.NewVerifier(vkey)
	check(err)
	return signer{s, v, vkey}
}

func (s signer) checkpoint(size int64, root tlog.Hash, extensions string) string {
	signed, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n%s", s.Name(), size, root, extensions)}, s)
	check(err)
	return string(signed)
}

type answer struct {
	Step   string `json:"step"`
	Status int    `json:"status"`
	Type   string `json:"type"`
	Text   string `json:"text"`
	Time   uint64 `json:"time"`
}

type client struct{ url, vkey string }

func (c client) send(step string, request func() (*http.Response, error)) answer {
	response, err := request()
	check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(err)
	return answer{Step: step, Status: response.StatusCode, Type: response.Header.Get("Content-Type"), Text: string(text)}
}

// verify gives the time of the cosignature, once note.Open has found that the log and the witness signed.
func (c client) verify(s signer, cosigned string) uint64 {
	witness, err := newCosigner(c.vkey)
	check(err)
	opened, err := note.Open([]byte(cosigned), note.VerifierList(s.verifier, witness))
	check(err)
	if len(opened.Sigs) != 2 || len(opened.UnverifiedSigs) != 0 {
		log.Fatalf("not signed by the log and the witness alone: %q", cosigned)
	}
	return witness.time
}

func (c client) add(step string, s signer, old int64, proof, checkpoint string) answer {
	body := fmt.Sprintf("old %d\n%s\n%s", old, proof, checkpoint)
	a := c.send(step, func() (*http.Response, error) {
		return http.Post(c.url+"/add-checkpoint", "text/plain", strings.NewReader(body))
	})
	if a.Status == http.StatusOK {
		a.Time = c.verify(s, checkpoint+a.Text)
	}
	return a
}

func (c client) grow(step string, s signer, h history, old, size int64) answer {
	return c.add(step, s, old, h.proof(old, size), s.checkpoint(size, h.root(size), ""))
}

func (c client) monitor(step string, s signer) answer {
	a := c.send(step, func() (*http.Response, error) {
		return http.Get(fmt.Sprintf("%s/%x/checkpoint", c.url, sha256.Sum256([]byte(s.Name()))))
	})
	if a.Status == http.StatusOK {
		a.Time = c.verify(s, a.Text)
	}
	return a
}

func main() {
	c := client{os.Args[1], os.Args[2]}
	honest, other := newSigner("go.example/honest", 1), newSigner("go.example/other", 2)
	fmt.Println(honest.vkey)
	fmt.Println(other.vkey)
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	check(err)
	out := json.NewEncoder(os.Stdout)
	tell := func(a answer) { check(out.Encode(a)) }

	honestly, forked := newHistory(300, 300, ""), newHistory(300, 2, " otherwise")
	tell(c.monitor("monitor nothing", honest))
	tell(c.grow("first", honest, honestly, 0, 3))
	tell(c.grow("again", honest, honestly, 3, 3))
	tell(c.grow("grow", honest, honestly, 3, 7))
	tell(c.grow("outdated", honest, honestly, 3, 20))
	tell(c.grow("as told", honest, honestly, 7, 20))
	tell(c.grow("fork", honest, forked, 20, 25))
	tell(c.grow("fork of the same size", honest, forked, 20, 20))
	tell(c.grow("rolled back", honest, honestly, 7, 10))
	tell(c.add("wrong proof", honest, 20, honestly.proof(19, 25), honest.checkpoint(25, honestly.root(25), "")))
	tell(c.add("old too large", honest, 20, "", honest.checkpoint(19, honestly.root(19), "")))
	impostor := newSigner("go.example/honest", 3)
	tell(c.grow("impostor", impostor, honestly, 20, 25))
	tell(c.grow("stranger", newSigner("go.example/stranger", 4), honestly, 0, 3))
	tell(c.add("extension", honest, 20, honestly.proof(20, 21), honest.checkpoint(21, honestly.root(21), "an extension\n")))
	size := int64(21)
	for step := int64(1); size+step <= 300; step++ {
		tell(c.grow("further", honest, honestly, size, size+step))
		size += step
	}
	tell(c.monitor("monitor", honest))

	tell(c.add("empty, with another root", other, 0, "", other.checkpoint(0, tlog.Hash{}, "")))
	tell(c.grow("empty", other, honestly, 0, 0))
	// All at once, each with a history of its own.
	answers := make([]answer, 16)
	var group sync.WaitGroup
	for n := range answers {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			answers[n] = c.grow("race", other, newHistory(9, 0, fmt.Sprint(n)), 0, int64(5+n%4))
		}(n)
	}
	group.Wait()
	for _, a := range answers {
		tell(a)
	}
	tell(c.monitor("monitor the race", other))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
