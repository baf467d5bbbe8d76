// Command go asks golang.org/x/mod/sumdb/note and tlog: it reads one JSON request per line from standard input and
// writes one JSON verdict per line to standard output, in the same order.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A request is an operation with those of the other fields that it takes.
type request struct {
	Op string `json:"op"`

	Name  string   `json:"name"`
	Seed  []byte   `json:"seed"`
	Skey  string   `json:"skey"`
	Vkeys []string `json:"vkeys"`
	Text  string   `json:"text"`
	Note  string   `json:"note"`

	Record    []byte      `json:"record"`
	Records   [][]byte    `json:"records"`
	Proof     []tlog.Hash `json:"proof"`
	Size      int64       `json:"size"`
	Root      tlog.Hash   `json:"root"`
	Index     int64       `json:"index"`
	Leaf      tlog.Hash   `json:"leaf"`
	First     int64       `json:"first"`
	FirstRoot tlog.Hash   `json:"first_root"`

	Path  string   `json:"path"`
	Tiles tileData `json:"tiles"`
}

type verdict struct {
	Result any    `json:"result"`
	Error  string `json:"error"`
}

var operations = map[string]func(request) (any, error){
	"make_key":  makeKey,
	"sign_note": signNote,
	"open_note": openNote,

	"leaf_hash":    func(r request) (any, error) { return tlog.RecordHash(r.Record), nil },
	"load":         load,
	"tree_hash":    func(r request) (any, error) { return tlog.TreeHash(r.Size, loaded) },
	"prove_record": func(r request) (any, error) { return tlog.ProveRecord(r.Size, r.Index, loaded) },
	"prove_tree":   func(r request) (any, error) { return tlog.ProveTree(r.Size, r.First, loaded) },
	"check_record": func(r request) (any, error) {
		return nil, tlog.CheckRecord(r.Proof, r.Size, r.Root, r.Index, r.Leaf)
	},
	"check_tree": func(r request) (any, error) {
		return nil, tlog.CheckTree(r.Proof, r.Size, r.Root, r.First, r.FirstRoot)
	},

	"tile_paths":  tilePaths,
	"parse_tile":  func(r request) (any, error) { return parseTile(r.Path) },
	"read_tile":   readTile,
	"read_leaves": readLeaves,
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	in.DisallowUnknownFields()
	for in.More() {
		var r request
		if err := in.Decode(&r); err != nil {
			log.Fatal(err)
		}
		var v verdict
		if result, err := operations[r.Op](r); err != nil {
			v.Error = err.Error()
		} else {
			v.Result = result
		}
		if err := out.Encode(v); err != nil {
			log.Fatal(err)
		}
	}
}

// makeKey gives both texts of the key that a seed makes.
func makeKey(r request) (any, error) {
	skey, vkey, err := note.GenerateKey(bytes.NewReader(r.Seed), r.Name)
	return map[string]string{"skey": skey, "vkey": vkey}, err
}

func signNote(r request) (any, error) {
	signer, err := note.NewSigner(r.Skey)
	if err != nil {
		return nil, err
	}
	signed, err := note.Sign(&note.Note{Text: r.Text}, signer)
	return string(signed), err
}

func openNote(r request) (any, error) {
	var known []note.Verifier
	for _, vkey := range r.Vkeys {
		verifier, err := note.NewVerifier(vkey)
		if err != nil {
			return nil, err
		}
		known = append(known, verifier)
	}
	n, err := note.Open([]byte(r.Note), note.VerifierList(known...))
	if err != nil {
		return nil, err
	}
	return map[string]any{"text": n.Text, "signers": names(n.Sigs), "unverified": names(n.UnverifiedSigs)}, nil
}

func names(signatures []note.Signature) []string {
	list := []string{}
	for _, s := range signatures {
		list = append(list, s.Name)
	}
	return list
}

// storage holds the hashes of a tree in the order tlog asks for them.
type storage []tlog.Hash

func (s storage) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		if x >= int64(len(s)) {
			return nil, fmt.Errorf("no hash %d in the loaded tree", x)
		}
		hashes[i] = s[x]
	}
	return hashes, nil
}

// loaded is the tree of the last load: what Go's own roots, proofs and tiles are made from.
var loaded storage

func load(r request) (any, error) {
	loaded = nil
	for n, record := range r.Records {
		hashes, err := tlog.StoredHashes(int64(n), record, loaded)
		if err != nil {
			return nil, err
		}
		loaded = append(loaded, hashes...)
	}
	return nil, nil
}

// Tiles have height 8. Go's paths say so ("tile/8/..."); those of c2sp.org/tlog-tiles, which requests have, do not.
const tileHeight = 8

func parseTile(path string) (tlog.Tile, error) {
	return tlog.ParseTilePath(strings.Replace(path, "tile/", "tile/8/", 1))
}

func tilePath(tile tlog.Tile) string {
	return strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
}

// tilePaths gives all tiles that a log makes on its way to a size, partial ones of every width among them.
func tilePaths(r request) (any, error) {
	paths := []string{}
	for _, tile := range tlog.NewTiles(tileHeight, 0, r.Size) {
		paths = append(paths, tilePath(tile))
	}
	return paths, nil
}

func readTile(r request) (any, error) {
	tile, err := parseTile(r.Path)
	if err != nil {
		return nil, err
	}
	return tlog.ReadTileData(tile, loaded)
}

// tileData has tiles by path, as a server gives them out.
type tileData map[string][]byte

func (d tileData) Height() int                     { return tileHeight }
func (d tileData) SaveTiles([]tlog.Tile, [][]byte) {}
func (d tileData) ReadTiles(tiles []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range tiles {
		data = append(data, d[tilePath(tile)])
	}
	return data, nil
}

// readLeaves gives the leaf hashes of a tree as a client reads them: from tiles that must lead to the root.
func readLeaves(r request) (any, error) {
	var indexes []int64
	for n := int64(0); n < r.Size; n++ {
		indexes = append(indexes, tlog.StoredHashIndex(0, n))
	}
	return tlog.TileHashReader(tlog.Tree{N: r.Size, Hash: r.Root}, r.Tiles).ReadHashes(indexes)
}
