#!/usr/bin/env python3
"""declarations.py JSON DIR - writes the declarations of the Rust crate jitrun-sys, DIR/lib.rs, and a test of their
layout, DIR/layout.rs, from jitrun-abi.json. The test has sizes and offsets as the C compiler has them."""
import json
import os
import sys

PLAIN = {"int": "c_int", "char": "c_char", "float": "f32", "double": "f64", "size_t": "usize", "int32_t": "i32",
         "uint32_t": "u32", "uint8_t": "u8", "int64_t": "i64", "uint64_t": "u64", "void": "c_void"}
KEYWORDS = {"type", "fn", "move", "ref", "match", "in", "where", "use", "mod", "loop", "impl"}


def own(name):
    return "r#" + name if name in KEYWORDS else name


def type_of(c, callbacks):
    """A type of C as Rust spells it."""
    words = c.replace("*", " * ").split()
    words = [word for word in words if word != "struct"]
    const = words[0] == "const"
    base, *stars = words[1:] if const else words
    if base in callbacks:
        return base
    rust = PLAIN.get(base, base)
    for star in stars:
        if star == "const":
            const = True
            continue
        rust = ("*const " if const else "*mut ") + rust
        const = False
    return rust


def structs_of(abi):
    """Every struct, and those inside of others: name, what C calls it, header, size, fields."""
    for one in abi["structs"]:
        fields = []
        for field in one["fields"]:
            if field["type"] == "struct":
                name = one["name"] + "_" + field["name"]
                yield name, f"{one['name']}.{field['name']}", one["header"], field["size"] // field.get("count", 1), \
                    field["fields"]
                field = dict(field, type=name)
            fields.append(field)
        yield one["name"], one["name"], one["header"], one["size"], fields


def declarations(abi):
    callbacks = {one["name"] for one in abi["callbacks"]}
    out = [
        "//! The C interface of jitrun " + abi["version"] + ", as it is: jitrun.h and the headers beside it.",
        "//!",
        "//! `man 3 jitrun` says what each function does; the crate `jitrun` is the safe way to it. Written by",
        "//! `declarations.py` from `jitrun-abi.json`.",
        "#![allow(non_camel_case_types)]",
        "#![warn(missing_docs)]",
        "",
        "use core::marker::{PhantomData, PhantomPinned};",
        "pub use std::os::raw::{c_char, c_int, c_void};",
        "",
        "#[cfg(test)]",
        "mod layout;",
        "",
    ]
    for one in abi["enums"]:
        for name, value in one["values"].items():
            out += [f"/// `{name}`.", f"pub const {name}: c_int = {value};"]
        out.append("")
    for name in abi["handles"]:
        out += [f"/// `{name}`, whose inside is the library's own.", "#[repr(C)]", f"pub struct {name} {{",
                "    inside: [u8; 0],", "    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,", "}", ""]
    for one in abi["callbacks"]:
        given = ", ".join(f"{own(p['name'])}: {type_of(p['type'], callbacks)}" for p in one["parameters"])
        returns = "" if one["returns"] == "void" else f" -> {type_of(one['returns'], callbacks)}"
        out.append(f"/// `{one['name']}` of {one['header']}.")
        whole = f"unsafe extern \"C\" fn({given}){returns}"
        line = f"pub type {one['name']} = Option<{whole}>;"
        if len(line) > 120:
            line = f"pub type {one['name']} = Option<\n    {whole},\n>;"
        out += [line, ""]
    for name, c, header, size, fields in structs_of(abi):
        out += [f"/// `{c}` of {header}.", "#[repr(C)]", "#[derive(Clone, Copy, Debug)]", f"pub struct {name} {{"]
        for field in fields:
            rust = type_of(field["type"], callbacks)
            if "count" in field:
                rust = f"[{rust}; {field['count']}]"
            out += [f"    /// `{field['type']} {field['name']}`.", f"    pub {own(field['name'])}: {rust},"]
        out += ["}", ""]
        if fields[0]["name"] == "size":
            out += [f"impl {name} {{", "    /// All zeros, which are the defaults, and its size.",
                    "    pub fn new() -> Self {",
                    "        // SAFETY: numbers and addresses that may be null: zeros are a value of it.",
                    "        let mut made: Self = unsafe { core::mem::zeroed() };",
                    f"        made.size = core::mem::size_of::<{name}>();", "        made", "    }", "}", "",
                    f"impl Default for {name} {{", "    fn default() -> Self {", "        Self::new()", "    }", "}", ""]
    out.append("extern \"C\" {")
    for one in abi["functions"]:
        out.append(f"    /// `{one['name']}` of {one['header']}.")
        given = ", ".join(f"{own(p['name'])}: {type_of(p['type'], callbacks)}" for p in one["parameters"])
        returns = "" if one["returns"] == "void" else f" -> {type_of(one['returns'], callbacks)}"
        line = f"    pub fn {one['name']}({given}){returns};"
        if len(line) > 120:
            given = "".join(f"        {each},\n" for each in given.split(", "))
            line = f"    pub fn {one['name']}(\n{given}    ){returns};"
        out.append(line)
    return "\n".join(out + ["}", ""])


def layout(abi):
    """Offsets and sizes of all fields, and what the constants are."""
    out = ["//! Whether the structs lie in memory as the C compiler has them. Written by `declarations.py`.", "",
           "use super::*;", "use core::mem::{size_of, MaybeUninit};", "", "macro_rules! field {",
           "    ($kind:ty, $field:ident, $offset:expr, $size:expr) => {{",
           "        let one = MaybeUninit::<$kind>::uninit();",
           "        // SAFETY: an address is made, and nothing is read.",
           "        let at = unsafe { core::ptr::addr_of!((*one.as_ptr()).$field) };",
           "        let name = concat!(stringify!($kind), \".\", stringify!($field));",
           "        assert_eq!(at as usize - one.as_ptr() as usize, $offset, \"offset of {}\", name);",
           "        assert_eq!(size_of_pointed(at), $size, \"size of {}\", name);", "    }};", "}", "",
           "fn size_of_pointed<T>(_: *const T) -> usize {", "    size_of::<T>()", "}", "", "#[test]",
           "fn structs_are_those_of_c() {", f"    assert_eq!(size_of::<usize>(), {abi['pointer']});"]
    for name, _, _, size, fields in structs_of(abi):
        out.append(f"    assert_eq!(size_of::<{name}>(), {size}, \"{name}\");")
        for f in fields:
            out.append(f"    field!({name}, {own(f['name'])}, {f['offset']}, {f['size']});")
    return "\n".join(out + ["}", ""])


abi, where = json.load(open(sys.argv[1], encoding="utf-8")), sys.argv[2]
for file, text in ("lib.rs", declarations(abi)), ("layout.rs", layout(abi)):
    with open(os.path.join(where, file), "w", encoding="utf-8") as f:
        f.write(text)
