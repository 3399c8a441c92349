#!/usr/bin/env python3
"""tested.py NAMES-FROM... -- TESTS... - whether tests name all that a binding makes public.

Of Rust, public are functions (`pub fn`, and those that `forward!` makes). Of a declaration file of TypeScript, they are
members of classes and interfaces, and exported functions. Of Go, they are functions, methods, and fields of structs. A
name counts as tested when a file behind -- has it as a word; of Rust, so does an example in a comment that is compiled.
"""
import os
import re
import sys


def rust(text):
    """Public functions, and what examples name."""
    code = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    names = re.findall(r"\bpub fn (\w+)", code)
    for block in re.findall(r"^forward! \{(.*?)^\}", code, re.DOTALL | re.MULTILINE):
        names += re.findall(r"^\s+(\w+)\(", block, re.MULTILINE)
    examples = re.findall(r"^\s*//[/!] ```(?!text)(.*?)^\s*//[/!] ```\s*$", text, re.DOTALL | re.MULTILINE)
    return names, "\n".join(examples)


def typescript(text):
    """Members and functions."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    names = re.findall(r"^export (?:declare )?(?:function|const) (\w+)", code, re.MULTILINE)
    for body in re.findall(r"^export (?:declare )?(?:class|interface) .*?\{\n(.*?)^\}", code, re.DOTALL | re.MULTILINE):
        names += re.findall(r"^  (?:static |readonly |get )*(\w+)\??\s*[(:<]", body, re.MULTILINE)
    return [name for name in names if name != "constructor"], ""


def go(text):
    """Functions, methods and fields with a capital letter."""
    code = re.sub(r"//[^\n]*", "", text)
    names = re.findall(r"^func (?:\(\w+ \*?\w+\) )?([A-Z]\w*)[\[(]", code, re.MULTILINE)
    for body in re.findall(r"^type [A-Z]\w* struct \{\n(.*?)^\}", code, re.DOTALL | re.MULTILINE):
        for fields in re.findall(r"^\t([A-Z]\w*(?:, \w+)*) ", body, re.MULTILINE):
            names += fields.split(", ")
    return names, ""


READ = {".rs": rust, ".ts": typescript, ".go": go}


def main():
    split = sys.argv.index("--")
    names, texts = [], []
    for path in sys.argv[1:split]:
        with open(path, encoding="utf-8") as f:
            found, examples = READ[os.path.splitext(path)[1]](f.read())
        names += [(name, path) for name in found]
        texts.append(examples)
    for path in sys.argv[split + 1:]:
        with open(path, encoding="utf-8") as f:
            texts.append(f.read())
    words = set(re.findall(r"\w+", "\n".join(texts)))
    missing = [(name, path) for name, path in names if name not in words]
    for name, path in missing:
        print(f"{path}: no test names {name}")
    print(f"# {len(names)} public names, {len(missing)} without a test")
    return 1 if missing or not names else 0


sys.exit(main())
