//go:build linux && amd64

package jitrun

// system.go - functions of the C library, found in memory: in the tables that the dynamic linker keeps for debuggers. A
// reference to them by name would only be resolved by Go's own linker, which leaves programs with cgo to another one.

import (
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"syscall"
	"unsafe"
)

// The functions, by their numbers in system.
const (
	systemCreateThread = iota
	systemDetachThread
	systemOpen
	systemSymbol
	systemSaid
)

var systemNames = [...]string{"pthread_create", "pthread_detach", "dlopen", "dlsym", "dlerror"}

var system [len(systemNames)]uintptr

// findSystem fills in system.
func findSystem() error {
	program, err := programStart()
	if err != nil {
		return err
	}
	libc, err := loadedObject(program, "libc.so.6")
	if err != nil {
		return err
	}
	for i, name := range systemNames {
		if system[i] = libc.function(name); system[i] == 0 {
			return fmt.Errorf("libc.so.6 has no %s: version 2.34 of the GNU C library or a later one was expected", name)
		}
	}
	return nil
}

// memory is something of type T at an address.
func memory[T any](address uintptr) *T { return (*T)(pointer(&address)) }

// readable says whether there is memory at an address: the kernel reads a set of signals there, and refuses what it is
// asked to do with it.
func readable(address uintptr) bool {
	const nothing = ^uintptr(0)
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, nothing, address, 0, 8, 0, 0)
	return errno != syscall.EFAULT
}

// programStart is where the program's file begins in memory: at the first page with its mark before this code.
func programStart() (uintptr, error) {
	const page, most = 4096, 1 << 30
	code := addressOfWork() &^ (page - 1)
	for at := code; at > page && code-at < most; at -= page {
		if readable(at) && *memory[[4]byte](at) == [4]byte{0x7f, 'E', 'L', 'F'} &&
			memory[elf.Header64](at).Phentsize == uint16(unsafe.Sizeof(elf.Prog64{})) {
			return at, nil
		}
	}
	return 0, errors.New("the beginning of the program was not found in memory")
}

// object is a file that the dynamic linker loaded: where it lies, and tables by their tags.
type object struct {
	base   uintptr
	tables map[elf.DynTag]uintptr
}

// dynamicOf reads the tables of an object, whose list of them is at an address.
func dynamicOf(base, at uintptr) object {
	o := object{base, map[elf.DynTag]uintptr{}}
	for ; ; at += unsafe.Sizeof(elf.Dyn64{}) {
		d := memory[elf.Dyn64](at)
		if elf.DynTag(d.Tag) == elf.DT_NULL {
			return o
		}
		o.tables[elf.DynTag(d.Tag)] = uintptr(d.Val)
	}
}

// table is the address of one; 0: there is none. The dynamic linker has made most of these offsets addresses.
func (o object) table(tag elf.DynTag) uintptr {
	at := o.tables[tag]
	if at != 0 && at < o.base {
		at += o.base
	}
	return at
}

// loadedObject finds a file that the program needs by the list of all, which the program's tables lead to.
func loadedObject(program uintptr, name string) (object, error) {
	header := memory[elf.Header64](program)
	var base, dynamic uintptr
	for i := uintptr(0); i < uintptr(header.Phnum); i++ {
		segment := memory[elf.Prog64](program + uintptr(header.Phoff) + i*uintptr(header.Phentsize))
		switch elf.ProgType(segment.Type) {
		case elf.PT_LOAD:
			if segment.Off == 0 {
				base = program - uintptr(segment.Vaddr)
			}
		case elf.PT_DYNAMIC:
			dynamic = uintptr(segment.Vaddr)
		}
	}
	if dynamic == 0 {
		return object{}, errors.New("the program is linked statically: one that is linked to libc.so.6 was expected")
	}
	list := dynamicOf(base, base+dynamic).tables[elf.DT_DEBUG]
	if list == 0 {
		return object{}, errors.New("the program has no list of what the dynamic linker loaded")
	}
	// struct r_debug and struct link_map of <link.h>.
	type linkMap struct{ base, name, dynamic, next uintptr }
	for at := memory[struct{ version, first uintptr }](list).first; at != 0; at = memory[linkMap](at).next {
		if one := memory[linkMap](at); path.Base(cText(one.name)) == name {
			return dynamicOf(one.base, one.dynamic), nil
		}
	}
	return object{}, fmt.Errorf("the program has no %s loaded", name)
}

// function is the address of a function by its name, of any version; 0: there is none.
func (o object) function(name string) uintptr {
	hash, symbols, names := o.table(elf.DT_GNU_HASH), o.table(elf.DT_SYMTAB), o.table(elf.DT_STRTAB)
	if hash == 0 || symbols == 0 || names == 0 {
		return 0
	}
	wanted := uint32(5381)
	for i := 0; i < len(name); i++ {
		wanted = wanted*33 + uint32(name[i])
	}
	table := memory[struct{ buckets, first, words, shift uint32 }](hash)
	buckets := hash + unsafe.Sizeof(*table) + 8*uintptr(table.words)
	chains := buckets + 4*uintptr(table.buckets)
	number := *memory[uint32](buckets + 4*uintptr(wanted%table.buckets))
	for ; number >= table.first && number != 0; number++ {
		found := *memory[uint32](chains + 4*uintptr(number-table.first))
		symbol := memory[elf.Sym64](symbols + uintptr(number)*elf.Sym64Size)
		if found|1 == wanted|1 && elf.ST_TYPE(symbol.Info) == elf.STT_FUNC && symbol.Shndx != 0 &&
			cText(names+uintptr(symbol.Name)) == name {
			return o.base + uintptr(symbol.Value)
		}
		if found&1 != 0 {
			break
		}
	}
	return 0
}
