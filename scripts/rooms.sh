#!/bin/sh
# scripts/rooms.sh - fails when two rooms include each other, when a top-level room includes one that it may not know,
# when a program includes an internal header that scripts/program_headers.txt does not name, when a file includes one
# that is not there, or when a test's script cannot be executed. A room is a folder with C files; those of tests do not
# count. It lists the includes that are too many.
set -eu
cd "$(dirname "$0")/.."
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	echo "rooms.sh: this is no git checkout: includes not looked at"
	exit 0
fi
# A test that is a script is run as it is.
plain=$(git ls-files 'tests/*/t_*.sh' | while read -r script; do [ -x "$script" ] || echo "$script"; done)
[ -z "$plain" ] || { echo "not executable: $plain"; exit 1; }

# Pairs that are no circle of files all the same, "A B" with A before B in the alphabet, one a line.
not_yet='
'
# Which top-level rooms a room may include, beside itself. scripts/symbols.sh reads it, too.
may='
base:
include:
encoders: base
sim: base
quantise: base kernels-templates
jit: base encoders
kernels-templates: base jit
language: base jit
graph: base include jit kernels-templates language
loaders: base graph
chat: base loaders
pictures: base loaders
grammar: base
optimise: base include jit runtime
eml: base include
answers: base grammar
runtime: base include answers graph jit kernels-templates language loaders chat grammar sim
train: base include chat graph jit kernels-templates loaders runtime
vision: base include chat graph jit kernels-templates language loaders pictures runtime
pull: base loaders
server: base include answers chat grammar loaders pictures runtime vision
programs: base include answers graph jit kernels-templates language loaders chat pull quantise runtime server train
programs: vision optimise eml
bench: base include jit kernels-templates loaders grammar runtime programs vision
docs: include
'
programs=$(grep -v '^#' scripts/program_headers.txt)
git ls-files '*.c' '*.h' '*.def' | grep -v '^tests/' | xargs awk -v not_yet="$not_yet" -v may="$may" \
	-v programs="$programs" '
	function top(path) { sub(/\/.*/, "", path); return path }
	function folder(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "." }
	BEGIN {
		n = split(not_yet, line, "\n")
		for (k = 1; k <= n; k++)
			known[line[k]] = 1
		n = split(may, line, "\n")
		for (k = 1; k <= n; k++) {
			m = split(line[k], word, "[: ]+")
			for (j = 1; j <= m; j++)
				allowed[word[1], word[j]] = 1
		}
		n = split(programs, line, "\n")
		for (k = 1; k <= n; k++)
			named[line[k]] = 1
		list = "git ls-files"
		while ((list | getline path) > 0)
			there[path] = 1
		close(list)
	}
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		split($0, part, "\"")
		from = folder(FILENAME); to = folder(part[2])
		if (part[2] ~ /\// && !(part[2] in there)) {
			printf "%s:%d: there is no %s\n", FILENAME, FNR, part[2]
			bad = 1
		}
		if (!((top(from), top(to)) in allowed) && part[2] ~ /\//) {
			printf "%s:%d: %s may not include %s\n", FILENAME, FNR, top(from), part[2]
			bad = 1
		}
		if (top(from) == "programs" && top(to) !~ /^(programs|base|include|\.)$/) {
			if (!(part[2] in named)) {
				printf "%s:%d: scripts/program_headers.txt does not name %s\n", FILENAME, FNR, part[2]
				bad = 1
			}
			used[part[2]] = 1
		}
		if (part[2] ~ /\// && from != to)
			edges[from, to] = edges[from, to] "\t" FILENAME ":" FNR ": " part[2] "\n"
	}
	END {
		for (edge in edges) {
			split(edge, end, SUBSEP)
			if (end[1] > end[2] || !((end[2], end[1]) in edges))
				continue
			pair = end[1] " " end[2]
			if (pair in known) {
				met[pair] = 1
				continue
			}
			printf "%s and %s include each other:\n", end[1], end[2]
			printf "%s%s", edges[edge], edges[end[2], end[1]]
			bad = 1
		}
		for (header in named)
			if (!(header in used)) {
				print header ": no program includes it; take it off scripts/program_headers.txt"
				bad = 1
			}
		for (pair in known)
			if (pair != "" && !(pair in met)) {
				print pair ": no circle any more; take it off the list in scripts/rooms.sh"
			}
		exit bad
	}'
