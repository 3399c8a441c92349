#!/usr/bin/env python3
"""api_table.py JSON BINDINGS [--table] - whether the bindings reach all that jitrun-abi.json lists.

Names are functions and constants, and fields of structs as "jit_token.kind". A binding reaches a name where
its code, without comments, uses it. What it does not reach stands in BINDINGS/NAME/left_out.txt: a line has a name, in
which a * stands for any characters, and the reason. It is an error when a name is neither reached nor left out, when a
line of a list fits nothing that is left out, and when it has no reason. --table prints functions by bindings.
"""
import fnmatch
import io
import json
import os
import re
import sys
import tokenize


def python_words(text):
    """The code of Python: names, and strings that are one name or words of a struct, but no comments and docstrings."""
    out, before = [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL):
            continue
        if token.type == tokenize.COMMENT:
            continue
        out.append(token.string)
        before = token.type
    return " ".join(out)


def without_comments(text):
    """The code of C, Rust and Go."""
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', lambda m: m[0] if m[0][0] == '"' else " ", text,
                  flags=re.DOTALL)
    return text


# Which files of a binding have calls of the library, and how to take the comments away.
CODE = {".py": python_words, ".c": without_comments, ".h": without_comments, ".rs": without_comments,
        ".go": without_comments, ".js": without_comments}
# Declarations that are made of jitrun-abi.json say nothing of what is reached.
MADE = ("jitrun-sys", "declarations.go")
NOT_CODE = ("tests", "examples", "example", "target", "node_modules")


def in_c(code, abi):
    """The names of C that Go's code has in its own spelling: promptTokens, or PromptTokens of a struct of Go, whose
    fields are those of C by their names."""
    words = {word.lower() for word in re.findall(r"\w+", code)}
    names = {part for name, _ in names_of(abi) for part in name.split(".")}
    return " ".join(sorted(name for name in names if name.replace("_", "").lower() in words))


def code_of(folder, abi):
    """All code of a binding, and of Rust what is public as it is: the structs of results."""
    out = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in MADE + NOT_CODE)
        for name in sorted(f for f in files if f not in MADE and not f.endswith("_test.go")):
            kind = os.path.splitext(name)[1]
            take = CODE.get(kind)
            if take:
                with open(os.path.join(at, name), encoding="utf-8") as f:
                    code = take(f.read())
                out.append(in_c(code, abi) if kind == ".go" else code)
    return "\n".join(out)


def whole_structs(code):
    """Structs whose fields all go to the caller: public in Rust, turned into a dict in Python."""
    found = set(re.findall(r"Result<sys::(jit_\w+)>", code))
    found |= set(re.findall(r'lib\s*\.\s*new\s*\(\s*"(jit_\w+)"\s*\)(?:(?!def ).)*?numbers_of\s*\(\s*out', code, re.DOTALL))
    return found


def setter_of(struct):
    """The function that sets its fields by name."""
    return struct + "_set"


def names_of(abi):
    """Every name, and for a field the struct and whether it is set by name: no addresses but texts."""
    for one in abi["functions"]:
        yield one["name"], None
    for one in abi["enums"]:
        for name in one["values"]:
            yield name, None
    for one in abi["structs"]:
        for field in one["fields"]:
            if field["name"] not in ("size", "reserved"):
                text = field.get("kind") != "pointer" or field["type"] == "const char *"
                yield one["name"] + "." + field["name"], text


def reached(abi, code):
    """The names that a binding uses."""
    words, whole = set(re.findall(r"\w+", code)), whole_structs(code)
    out = set()
    for name, text in names_of(abi):
        struct, _, field = name.partition(".")
        if not field:
            if name in words:
                out.add(name)
        elif struct in whole or (text and setter_of(struct) in words) or (struct in words and field in words):
            out.add(name)
    return out


def read_list(path):
    """Patterns and reasons."""
    rows = []
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                line = line.strip()
                if line and not line.startswith("#"):
                    rows.append((number, *(line.split(None, 1) + [""])[:2]))
    return rows


def judge(name, found, every, rows, path):
    """What is wrong with a binding."""
    wrong, used = [], set()
    for one in every:
        if one in found:
            continue
        fits = [number for number, pattern, _ in rows if fnmatch.fnmatchcase(one, pattern)]
        if not fits:
            wrong.append(f"{name}: {one} is neither reached nor left out in {path}")
        used.update(fits)
    for number, pattern, reason in rows:
        if number not in used:
            wrong.append(f"{path}:{number}: {pattern} fits nothing that is left out")
        if len(reason.split()) < 2:
            wrong.append(f"{path}:{number}: {pattern} has no reason")
    return wrong


def main():
    abi = json.load(open(sys.argv[1], encoding="utf-8"))
    folder, wrong, table = sys.argv[2], [], {}
    every = [name for name, _ in names_of(abi)]
    for name in sorted(os.listdir(folder)):
        if not os.path.isdir(os.path.join(folder, name)):
            continue
        path = os.path.join(folder, name, "left_out.txt")
        table[name] = reached(abi, code_of(os.path.join(folder, name), abi))
        wrong += judge(name, table[name], every, read_list(path), path)
    if "--table" in sys.argv:
        print("function".ljust(32), *[n.ljust(7) for n in table])
        for one in abi["functions"]:
            print(one["name"].ljust(32), *[("yes" if one["name"] in table[n] else "-").ljust(7) for n in table])
    for line in wrong:
        print(line)
    print(f"# {len(every)} names, " + ", ".join(f"{name} reaches {len(found)}" for name, found in table.items()))
    return 1 if wrong else 0


sys.exit(main())
