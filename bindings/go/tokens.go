//go:build linux && amd64

package jitrun

// tokens.go - a model's vocabulary, token by token, and what its files say of it.

import (
	"runtime"
	"unsafe"
)

// TokenKind is what kind of token it is, with the numbers of GGUF files.
type TokenKind int

// The kinds of tokens.
const (
	TokenNormal  = TokenKind(jitTokenNormal)
	TokenUnknown = TokenKind(jitTokenUnknown) // stands for text that has no token
	TokenControl = TokenKind(jitTokenControl) // no text becomes it, unless that is asked for
	TokenUser    = TokenKind(jitTokenUser)    // a text that always becomes this one token
	TokenUnused  = TokenKind(jitTokenUnused)
	TokenByte    = TokenKind(jitTokenByte) // one byte of what no other token spells
)

// Token is an entry of a vocabulary.
type Token struct {
	ID    int32
	Text  string // as the vocabulary spells it: "Ġthe", "<0x0A>", "<|im_end|>"
	Bytes string // what it adds to a text, which may be part of a character
	Kind  TokenKind
	IsEnd bool // it ends a generation
}

// Token is one token of the vocabulary.
func (m *Model) Token(id int32) (Token, error) {
	p, err := m.h.use()
	if err != nil {
		return Token{}, err
	}
	defer m.h.release()
	return token(p, id)
}

func token(p uintptr, id int32) (Token, error) {
	raw, room := &jitToken{size: unsafe.Sizeof(jitToken{})}, make([]byte, 64)
	for {
		err := status(nil, jitModelToken, p, uintptr(uint32(id)), uintptr(unsafe.Pointer(raw)),
			uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)))
		if err != nil {
			return Token{}, err
		}
		if raw.nBytes <= uintptr(len(room)) {
			return Token{id, cBytes(raw.text, raw.nText), string(room[:raw.nBytes]), TokenKind(raw.kind),
				raw.isEnd != 0}, nil
		}
		room = make([]byte, raw.nBytes)
	}
}

// Tokens is the whole vocabulary.
func (m *Model) Tokens() ([]Token, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	if m.vocab > 0 {
		if _, err := token(p, 0); err != nil {
			return nil, err
		}
	}
	const roomEach = 64
	out, raws, room := make([]Token, m.vocab), make([]jitToken, m.vocab), make([]byte, m.vocab*roomEach)
	var failed error
	many(jitModelToken, m.vocab, func(i int, a *[mostParameters]uintptr) {
		raws[i].size = unsafe.Sizeof(jitToken{})
		a[0], a[1], a[2] = p, uintptr(i), uintptr(unsafe.Pointer(&raws[i]))
		a[3], a[4] = uintptr(unsafe.Pointer(&room[i*roomEach])), roomEach
	}, func(i int, result uintptr) {
		raw := &raws[i]
		if int32(result) != jitOk || raw.nBytes > roomEach {
			var err error
			if out[i], err = token(p, int32(i)); failed == nil {
				failed = err
			}
			return
		}
		out[i] = Token{int32(i), cBytes(raw.text, raw.nText), string(room[i*roomEach:][:raw.nBytes]),
			TokenKind(raw.kind), raw.isEnd != 0}
	})
	runtime.KeepAlive(raws)
	runtime.KeepAlive(room)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// FindToken is the token that the vocabulary spells exactly so; false: there is none.
func (m *Model) FindToken(text string) (int32, bool) {
	p, err := m.h.use()
	if err != nil {
		return -1, false
	}
	defer m.h.release()
	var h held
	at, n := h.bytes(text)
	id := int32(call(jitModelFindToken, p, at, n))
	runtime.KeepAlive(&h)
	return id, id >= 0
}

// Role is the token with a role, such as "bos" or "fim_prefix"; false: the model has none.
func (m *Model) Role(role string) (int32, bool, error) {
	p, err := m.h.use()
	if err != nil {
		return -1, false, err
	}
	defer m.h.release()
	var h held
	at := h.text("the role", role)
	if h.err != nil {
		return -1, false, h.err
	}
	id := new(int32)
	err = status(nil, jitModelRole, p, at, uintptr(unsafe.Pointer(id)))
	runtime.KeepAlive(&h)
	if err != nil {
		return -1, false, err
	}
	return *id, *id >= 0, nil
}

// Roles are the names of all roles.
func Roles() ([]string, error) {
	if err := ensure(); err != nil {
		return nil, err
	}
	var out []string
	for i := uintptr(0); ; i++ {
		name := call(jitTokenRole, i)
		if name == 0 {
			return out, nil
		}
		out = append(out, cText(name))
	}
}

// StopTexts are the texts that end a generation by the model's own files.
func (m *Model) StopTexts() ([]string, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	var out []string
	for i := uintptr(0); ; i++ {
		text := call(jitModelStop, p, i)
		if text == 0 {
			return out, nil
		}
		out = append(out, cText(text))
	}
}

// MetadataKeys are what the model's files say something of, in their order: the keys of a GGUF file, or the members of
// config.json and generation_config.json.
func (m *Model) MetadataKeys() ([]string, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	n := int(call(jitModelMetadataCount, p))
	out := make([]string, n)
	for i := range out {
		raw, err := metadata(p, i)
		if err != nil {
			return nil, err
		}
		out[i] = cText(raw.key)
	}
	return out, nil
}

func metadata(p uintptr, number int) (*jitMetadata, error) {
	raw := &jitMetadata{size: unsafe.Sizeof(jitMetadata{})}
	return raw, status(nil, jitModelMetadata, p, uintptr(number), uintptr(unsafe.Pointer(raw)))
}

// Metadata is what the model's files say of a key: a string, int64, float64, bool, nil, or a slice of one of these.
// Items of an array that are of several kinds are an []any; arrays and objects in it are nil. false: there is no such
// key.
func (m *Model) Metadata(key string) (any, bool, error) {
	p, err := m.h.use()
	if err != nil {
		return nil, false, err
	}
	defer m.h.release()
	var h held
	at := h.text("the key", key)
	if h.err != nil {
		return nil, false, h.err
	}
	number := int64(call(jitModelMetadataFind, p, at))
	runtime.KeepAlive(&h)
	if number < 0 {
		return nil, false, nil
	}
	raw, err := metadata(p, int(number))
	if err != nil {
		return nil, false, err
	}
	if raw.kind != jitMetadataArray {
		return raw.value(), true, nil
	}
	items, err := metadataItems(p, int(number), int(raw.n))
	if err != nil {
		return nil, false, err
	}
	switch raw.itemKind {
	case jitMetadataString:
		return sameKind[string](items), true, nil
	case jitMetadataInteger:
		return sameKind[int64](items), true, nil
	case jitMetadataReal:
		return sameKind[float64](items), true, nil
	case jitMetadataBool:
		return sameKind[bool](items), true, nil
	}
	return items, true, nil
}

func metadataItems(p uintptr, number, n int) ([]any, error) {
	out, raws := make([]any, n), make([]jitMetadata, n)
	var failed error
	many(jitModelMetadataItem, n, func(i int, a *[mostParameters]uintptr) {
		raws[i].size = unsafe.Sizeof(jitMetadata{})
		a[0], a[1], a[2], a[3] = p, uintptr(number), uintptr(i), uintptr(unsafe.Pointer(&raws[i]))
	}, func(i int, result uintptr) {
		if int32(result) != jitOk && failed == nil {
			failed = status(nil, jitModelMetadataItem, p, uintptr(number), uintptr(i),
				uintptr(unsafe.Pointer(&raws[i])))
		}
		out[i] = raws[i].value()
	})
	runtime.KeepAlive(raws)
	return out, failed
}

// value is what is no array.
func (raw *jitMetadata) value() any {
	switch raw.kind {
	case jitMetadataString:
		return cBytes(raw.text, raw.n)
	case jitMetadataInteger:
		return raw.integer
	case jitMetadataReal:
		return raw.real
	case jitMetadataBool:
		return raw.integer != 0
	}
	return nil
}

func sameKind[T any](items []any) []T {
	out := make([]T, len(items))
	for i, item := range items {
		out[i], _ = item.(T)
	}
	return out
}
