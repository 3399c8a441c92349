#!/usr/bin/env python3
"""Makes the wheel of the Python package, with the library in it, by Python's own modules alone.

    python3 bindings/python/jitrun_wheel.py --library build/.libs/libjitrun.so --out build/wheels

It is the backend of pyproject.toml, too: `pip install bindings/python` finds the library that was built in build/, or
that $JITRUN_LIBRARY names. The same library and sources give the same bytes. What libjitrun.so needs beside the C
library goes along, into jitrun/libs; the tag of the platform is that of the newest symbol of the C library in use.
"""
from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What every manylinux system has.
SYSTEM = re.compile(r"^(libc|libm|libdl|libpthread|librt|libutil|ld-linux-x86-64|linux-vdso|libgcc_s|libstdc\+\+)\.so")


class WheelError(Exception):
    """Why no wheel can be made: one sentence."""


def elf_sections(data: bytes):
    """Sections of a 64-bit file by number: (type, offset, size, link)."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise WheelError("the library is no shared object of 64 bits")
    start, size, n = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3A)
    for i in range(n):
        _, kind, _, _, offset, length, link = struct.unpack_from("<IIQQQQI", data, start + i * size)
        yield kind, offset, length, link


def glibc_of(data: bytes) -> tuple:
    """The newest version of the C library that a shared object asks for."""
    rows, newest = list(elf_sections(data)), (2, 17)
    for kind, offset, _, link in rows:
        if kind != 0x6FFFFFFE:  # SHT_GNU_verneed
            continue
        names, at = rows[link][1], offset
        while True:
            _, count, _, aux, step = struct.unpack_from("<HHIII", data, at)
            need = at + aux
            for _ in range(count):
                _, _, _, name, more = struct.unpack_from("<IHHII", data, need)
                text = data[names + name:data.index(b"\0", names + name)].decode()
                found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", text)
                if found:
                    newest = max(newest, (int(found[1]), int(found[2])))
                need += more
            if not step:
                break
            at += step
    return newest


def needed_by(library: Path):
    """What it is linked with and not every system has: (name, file)."""
    # Without what the environment adds to every program: it is no part of the library.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    said = subprocess.run(["ldd", str(library)], capture_output=True, text=True, env=environment)
    if said.returncode:
        raise WheelError(f"ldd says of {library}: {said.stderr.strip()}")
    for line in said.stdout.splitlines():
        found = re.match(r"\s*(\S+) => (\S+)", line)
        if found and "not" == found[2]:
            raise WheelError(f"{library} needs {found[1]}, which is not found")
        if found and not SYSTEM.match(found[1]):
            if re.match(r"lib(asan|ubsan|tsan)", found[1]):
                raise WheelError(f"{library} was built with sanitizers")
            yield found[1], Path(found[2])


def stripped(path: Path) -> bytes:
    """Its bytes without symbols for debuggers, where there is a program that takes them out."""
    if not shutil.which("strip"):
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / path.name
        subprocess.run(["strip", "--strip-unneeded", "-o", str(out), str(path.resolve())], check=True)
        return out.read_bytes()


def licence_of(library: Path):
    """The text under which the system's package of a library is, if it is one of dpkg's."""
    if not shutil.which("dpkg-query"):
        return None
    inside = re.sub(r"^/usr/lib/", "/lib/", str(library.resolve()))
    for name in (inside, f"/usr{inside}", str(library)):
        said = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if said.returncode == 0:
            text = Path("/usr/share/doc") / said.stdout.split(":")[0] / "copyright"
            return text.read_bytes() if text.is_file() else None
    return None


def find_library() -> Path:
    """The library that $JITRUN_LIBRARY names, that was built in the source tree, or that is installed."""
    places = [os.environ.get("JITRUN_LIBRARY"), HERE.parents[1] / "build" / ".libs" / "libjitrun.so",
              HERE.parents[1] / ".libs" / "libjitrun.so"]
    for place in places:
        if place and Path(place).is_file():
            return Path(place)
    if shutil.which("pkg-config"):
        said = subprocess.run(["pkg-config", "--variable=libdir", "jitrun"], capture_output=True, text=True)
        if said.returncode == 0 and (Path(said.stdout.strip()) / "libjitrun.so").is_file():
            return Path(said.stdout.strip()) / "libjitrun.so"
    raise WheelError("there is no libjitrun.so: build it (make libjitrun.la jitrun-abi.json), or name it in "
                     "JITRUN_LIBRARY")


def find_abi(library: Path) -> Path:
    """jitrun-abi.json, which the build makes beside the library."""
    beside = library.resolve().parent
    places = [beside, beside.parent, beside.parent / "share" / "jitrun", beside.parent.parent / "share" / "jitrun"]
    for place in places:
        if (place / "jitrun-abi.json").is_file():
            return place / "jitrun-abi.json"
    raise WheelError(f"there is no jitrun-abi.json beside {library}: make jitrun-abi.json")


def metadata_of(version: str) -> bytes:
    """The METADATA file; the manual is the description."""
    manual = HERE.parents[1] / "docs" / "python.md"
    head = (f"Metadata-Version: 2.1\nName: jitrun\nVersion: {version}\n"
            "Summary: Runs language models with machine code of its own\nRequires-Python: >=3.8\n"
            "License-File: LICENSE\nClassifier: Operating System :: POSIX :: Linux\nClassifier: Typing :: Typed\n"
            "Provides-Extra: numpy\nRequires-Dist: numpy; extra == \"numpy\"\n"
            "Description-Content-Type: text/markdown\n\n")
    return head.encode() + (manual.read_bytes() if manual.is_file() else b"")


def contents(library: Path) -> tuple:
    """(version, tag, the files by their names in the wheel)."""
    about = find_abi(library)
    version = json.loads(about.read_text())["version"]
    files = {p.relative_to(HERE).as_posix(): p.read_bytes() for p in sorted((HERE / "jitrun").rglob("*"))
             if p.suffix == ".py" or p.name == "py.typed"}
    info = f"jitrun-{version}.dist-info"
    files["jitrun/jitrun-abi.json"] = about.read_bytes()
    files["jitrun/libjitrun.so"] = stripped(library)
    files[f"{info}/licenses/LICENSE"] = (HERE.parents[1] / "LICENSE").read_bytes()
    for name, path in needed_by(library):
        files[f"jitrun/libs/{name}"] = stripped(path)
        licence = licence_of(path)
        if licence:
            files[f"{info}/licenses/{name}.txt"] = licence
    objects = [d for n, d in files.items() if ".so" in n and n.startswith("jitrun/")]
    major, minor = max(glibc_of(d) for d in objects)
    tag = f"py3-none-manylinux_{major}_{minor}_x86_64"
    files[f"{info}/METADATA"] = metadata_of(version)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: jitrun_wheel\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n").encode()
    return version, tag, files


def write(path: Path, files: dict, info: str) -> None:
    """A zip file whose bytes depend on the files alone; RECORD is the last of them."""
    record = ""
    with zipfile.ZipFile(path, "w") as z:
        def add(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if ".so" in name and name.startswith("jitrun/") else 0o644) << 16
            entry.create_system = 3
            z.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)

        for name in sorted(files, key=lambda n: (n.startswith(info), n)):
            add(name, files[name])
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(files[name])}\n"
        add(f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode())


def make(out: Path, library: Path) -> Path:
    """Writes the wheel into a folder; its path."""
    version, tag, files = contents(library)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"jitrun-{version}-{tag}.whl"
    write(path, files, f"jitrun-{version}.dist-info")
    return path


# ---- what pip calls (PEP 517)

def get_requires_for_build_wheel(config_settings=None):
    """Nothing."""
    return []


def get_requires_for_build_sdist(config_settings=None):
    """Nothing."""
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The name of the wheel in that folder."""
    return make(Path(wheel_directory), find_library()).name


def build_sdist(sdist_directory, config_settings=None):
    """Sources are those of the whole project."""
    raise WheelError("the Python package has no sources of its own: take the project's release archive")


def main() -> int:
    """The command line."""
    p = argparse.ArgumentParser(description="Makes the wheel of the Python package.")
    p.add_argument("--library", type=Path, help="libjitrun.so; by default the one in build/, or the installed one")
    p.add_argument("--out", type=Path, default=Path("wheels"), help="the folder to write to (wheels)")
    a = p.parse_args()
    try:
        print(make(a.out, a.library or find_library()))
    except (WheelError, OSError, subprocess.CalledProcessError) as e:
        print(f"jitrun_wheel: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
