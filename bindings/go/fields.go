//go:build linux && amd64

package jitrun

// fields.go - structs of Go and of C whose fields have the same names but for their case: TopP and topP.

import (
	"reflect"
	"strings"
	"unsafe"
)

// partner is the field of a struct with the name of another's; false: it has none.
func partner(of reflect.Value, name string) (reflect.Value, bool) {
	field := of.FieldByNameFunc(func(other string) bool { return strings.EqualFold(other, name) })
	return field, field.IsValid()
}

// fromC fills what `to` points to from the struct of C that raw points to. Fields of one alone, and lists that C has by
// their addresses, stay as they are.
func fromC(to, raw any) { fillFromC(reflect.ValueOf(to).Elem(), reflect.ValueOf(raw).Elem()) }

// numbers are those that a function of C writes about an object into the struct that raw points to.
func numbers[Out, Raw any](c *core, get function, of uintptr, raw *Raw) (out Out, err error) {
	if err = status(c, get, of, uintptr(unsafe.Pointer(raw))); err == nil {
		fromC(&out, raw)
	}
	return out, err
}

func fillFromC(to, raw reflect.Value) {
	for i := 0; i < to.NumField(); i++ {
		if from, ok := partner(raw, to.Type().Field(i).Name); ok {
			setFromC(to.Field(i), from)
		}
	}
}

func setFromC(to, from reflect.Value) {
	switch to.Kind() {
	case reflect.Bool:
		to.SetBool(from.Int() != 0)
	case reflect.Int:
		if from.CanUint() {
			to.SetInt(int64(from.Uint()))
		} else {
			to.SetInt(from.Int())
		}
	case reflect.Uint64:
		to.SetUint(from.Uint())
	case reflect.Float32, reflect.Float64:
		to.SetFloat(from.Float())
	case reflect.String:
		if from.Kind() == reflect.Array {
			to.SetString(textOf(from.Slice(0, from.Len()).Bytes()))
		} else {
			to.SetString(cText(uintptr(from.Uint())))
		}
	case reflect.Array:
		for i := 0; i < to.Len(); i++ {
			if to.Index(i).Kind() == reflect.Struct {
				fillFromC(to.Index(i), from.Index(i))
			} else {
				setFromC(to.Index(i), from.Index(i))
			}
		}
	}
}

// toC fills the struct of C that raw points to, likewise. An empty text becomes NULL.
func (h *held) toC(raw, from any) {
	to, of := reflect.ValueOf(raw).Elem(), reflect.ValueOf(from).Elem()
	for i := 0; i < of.NumField(); i++ {
		name, value := of.Type().Field(i).Name, of.Field(i)
		field, ok := partner(to, name)
		if !ok {
			continue
		}
		// It has a small letter, so reflect would only read it.
		field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
		switch value.Kind() {
		case reflect.Bool:
			field.SetInt(int64(flag(value.Bool())))
		case reflect.Int:
			field.SetInt(int64(h.int(name, int(value.Int()))))
		case reflect.Uint64:
			field.SetUint(value.Uint())
		case reflect.Float32:
			field.SetFloat(value.Float())
		case reflect.String:
			field.SetUint(uint64(h.optional(name, value.String())))
		}
	}
}
