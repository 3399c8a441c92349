"""tests/abi/abi_json.py JSON MODEL LIBRARY HEADERS... - judges jitrun-abi.json: its numbers by ctypes, which lays out
structs of its own from the names of types; its completeness by the text of the headers; and its use by calling the
library through nothing else. LIBRARY may be empty."""
import ctypes
import json
import re
import subprocess
import sys

path, model, library, *headers = sys.argv[1:]
abi = json.load(open(path))
text = "".join(re.sub(r"/\*.*?\*/", " ", open(name).read(), flags=re.S) for name in headers)
scalar = {"int": ctypes.c_int, "size_t": ctypes.c_size_t, "float": ctypes.c_float, "double": ctypes.c_double,
          "char": ctypes.c_char, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
          "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64}
callbacks = {one["name"] for one in abi["callbacks"]}


def need(condition, what):
    if not condition:
        sys.exit(what)


def type_of(field):
    name = field["type"]
    if name == "struct":
        kind = laid_out("inner", field["fields"])
    elif name.endswith("*") or name in callbacks:
        kind = ctypes.c_void_p
    else:
        kind = scalar[name]
    return kind * field["count"] if "count" in field else kind


def laid_out(name, fields):
    return type(name, (ctypes.Structure,), {"_fields_": [(f["name"], type_of(f)) for f in fields]})


def compare(name, kind, fields, size):
    end = 0
    for field in fields:
        own = getattr(kind, field["name"])
        need((own.offset, own.size) == (field["offset"], field["size"]), f"{name}.{field['name']}: {own} {field}")
        hole = field["offset"] - end
        need(hole == 0 or (hole == 4 and field["offset"] % 8 == 0), f"{name}: a hole before {field['name']}")
        end = field["offset"] + field["size"]
        if field["type"] == "struct":
            each = field["size"] // field.get("count", 1)
            compare(f"{name}.{field['name']}", laid_out("inner", field["fields"]), field["fields"], each)
    need(end == size == ctypes.sizeof(kind), f"{name}: {end} of {size} bytes have a field")


structs = {}
for one in abi["structs"]:
    structs[one["name"]] = laid_out(one["name"], one["fields"])
    compare(one["name"], structs[one["name"]], one["fields"], one["size"])

# Complete: names by other expressions than the maker's.
declared = set(re.findall(r"^[a-z][^\n(]*?\b(jit_\w+)\(", text, flags=re.M)) - {"jit_error"}
need(declared == {one["name"] for one in abi["functions"]}, "functions differ from those of the headers")
need(len(declared) > 60, f"{len(declared)} functions are few")
words = set(re.findall(r"\bJIT_[A-Z0-9_]+\b", text))
macros = set(re.findall(r"#\s*define\s+(JIT_[A-Z0-9_]+)", text))
enumerators = {name for one in abi["enums"] for name in one["values"]}
need(enumerators == words - macros, f"constants: {enumerators ^ (words - macros)}")
opened = set(re.findall(r"struct (jit_\w+) \{", text))
need(opened == set(structs), f"structs: {opened ^ set(structs)}")
need(set(abi["handles"]) == set(re.findall(r"typedef struct (jit_\w+) \1;", text)) - opened, "handles")
for one in abi["functions"]:
    match = re.search(r"\b" + one["name"] + r"\(([^;]*)\);", text)
    own = [] if match.group(1) == "void" else [" ".join(p.split()) for p in match.group(1).split(",")]
    need(own == [re.sub(r"\* ", "*", p["type"] + " " + p["name"]) for p in one["parameters"]], f"{one['name']}: {own}")
if not library:
    sys.exit(0)
exported = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
need(set(re.findall(r"\bjit_\w+", exported)) == declared, "what the library exports")

# Use: a model's tokens and back, by the file's numbers alone.
c = ctypes.CDLL(library)
for one in abi["functions"]:
    function = getattr(c, one["name"])
    function.argtypes = [scalar.get(p["type"], ctypes.c_void_p) for p in one["parameters"]]
    function.restype = None if one["returns"] == "void" else scalar.get(one["returns"], ctypes.c_void_p)
need(ctypes.string_at(c.jit_version()).decode() == abi["version"], "the version")
said = subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout
need(f"[{abi['library']}]" in said, f"the name of the library is not {abi['library']}")


def sized(name, **fields):
    made = structs[name](size=ctypes.sizeof(structs[name]))
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def check(ok):
    need(ok, error.message.decode())


error = structs["jit_error"]()
err = ctypes.byref(error)
cache = ctypes.create_string_buffer(b"")
options = sized("jit_model_options", threads=1, cache_dir=ctypes.addressof(cache))
m = c.jit_model_open(model.encode(), ctypes.byref(options), err)
check(m)
ids, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
check(c.jit_model_tokenize(m, b"Once upon a time", 16, 0, 0, ctypes.byref(ids), ctypes.byref(n), err) == 0)
spelt = b""
for i in range(n.value):
    token, room = sized("jit_token"), ctypes.create_string_buffer(64)
    check(c.jit_model_token(m, ids[i], ctypes.byref(token), room, 64, err) == 0)
    spelt += room.raw[: token.n_bytes]
need(spelt.lstrip() == b"Once upon a time", f"the tokens spell {spelt}")
options = sized("jit_session_options", context=32, threads=1)
s = c.jit_session_open(m, ctypes.byref(options), err)
check(s)
check(c.jit_session_feed(s, ids, n, err) == 0)
c.jit_free(ids)
chosen = ctypes.c_int32()
check(c.jit_session_next(s, ctypes.byref(chosen), err) == 0)
c.jit_session_close(s)

# Every struct of options has a function that sets its fields by name, and that knows each of them.
for one in abi["structs"]:
    if one["name"] != "jit_sampling" and not one["name"].endswith("_options"):
        continue
    need(one["name"] + "_set" in declared, f"nothing sets {one['name']} by name")
    for field in one["fields"][1:]:
        made = sized(one["name"])
        getattr(c, one["name"] + "_set")(ctypes.byref(made), field["name"].encode(), b"?", err)
        need(b"has no option" not in error.message, f"{error.message}")

# What a model needs is what "jitrun info" says of it.
told = json.loads(subprocess.run(["./jitrun", "info", model, "--json"], capture_output=True, check=True).stdout)["memory"]
needs = sized("jit_needs")
check(c.jit_model_needs(model.encode(), None, ctypes.byref(needs), err) == 0)
need((needs.weight_bytes, needs.token_bytes) == (told["weight_bytes"], told["token_bytes"]), f"weights: {told}")
options = sized("jit_session_options", context=told["default"]["context"])
check(c.jit_model_needs(model.encode(), ctypes.byref(options), ctypes.byref(needs), err) == 0)
need((needs.context, needs.kv_bytes, needs.pass_bytes) == tuple(
    told["default"][name] for name in ("context", "kv_bytes", "activation_bytes")), f"a session: {told}")
c.jit_model_close(m)
