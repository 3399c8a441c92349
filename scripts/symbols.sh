#!/bin/sh
# scripts/symbols.sh - in a build directory: fails when an object uses a symbol of a room that scripts/rooms.sh does not
# let it include, or when two rooms use symbols of each other and the list below lacks the pair. So a declaration that
# is written by hand does not get around the list of rooms.
set -eu
top=$(dirname "$0")
rooms='answers base chat encoders grammar graph jit kernels-templates language loaders optimise pictures quantise
	runtime server sim train vision'
# A table of kinds, or of drivers, names what its rooms define, and these use functions that stand beside the table;
# sessions are members of batches, and models have sessions.
known='
grammar/rules grammar/schema
jit jit/ptx
jit jit/rdna
jit jit/spirv
jit jit/x86
kernels-templates/attention kernels-templates/kinds
kernels-templates/kinds kernels-templates/matmul
kernels-templates/kinds kernels-templates/recurrent
runtime/batch runtime/session
runtime/device runtime/device/amd
runtime/device runtime/device/cuda
runtime/device runtime/device/host
runtime/device runtime/device/simulated
runtime/device runtime/device/vulkan
runtime/engine runtime/model
runtime/model runtime/session
server server/control
server server/http
'
objects=$(find $rooms -name '*.o' 2>/dev/null | LC_ALL=C sort)
if [ "$(printf '%s\n' "$objects" | wc -l)" -lt 500 ]; then
	echo "symbols.sh: objects are not here"
	exit 77
fi
printf '%s\n' "$objects" | xargs nm -A 2>/dev/null |
	awk -v known="$known" -v may="$(sed -n "/^may='/,/^'/p" "$top/rooms.sh")" '
	function top(room) { sub(/\/.*/, "", room); return room }
	BEGIN {
		n = split(may, line, "\n")
		for (k = 1; k <= n; k++) {
			m = split(line[k], word, "[: ]+")
			for (j = 1; j <= m; j++)
				allowed[word[1], word[j]] = 1
		}
		n = split(known, line, "\n")
		for (k = 1; k <= n; k++)
			listed[line[k]] = 1
	}
	{
		file = $1
		sub(/:.*/, "", file)
		sub(/\/\.libs/, "", file)
		room = file
		sub(/\/[^\/]*$/, "", room)
		if ($(NF - 1) ~ /^[TDBRVWC]$/)
			home[$NF] = room
		else if ($(NF - 1) == "U" && !((room, $NF) in user))
			user[room, $NF] = file
	}
	END {
		for (use in user) {
			split(use, part, SUBSEP)
			if (!(part[2] in home) || home[part[2]] == part[1])
				continue
			to = home[part[2]]
			n_edges++
			edge[part[1], to] = user[use] " uses " part[2]
			if (!((top(part[1]), top(to)) in allowed)) {
				print user[use] " uses " part[2] " of " to ", which " top(part[1]) " may not include"
				bad = 1
			}
		}
		for (e in edge) {
			split(e, part, SUBSEP)
			if (part[1] > part[2] || !((part[2], part[1]) in edge))
				continue
			pair = part[1] " " part[2]
			met[pair] = 1
			if (!(pair in listed)) {
				print pair " use each other: " edge[part[1], part[2]] ", " edge[part[2], part[1]]
				bad = 1
			}
		}
		for (pair in listed)
			if (pair != "" && !(pair in met)) {
				print pair ": do not use each other; take them off the list in scripts/symbols.sh"
				bad = 1
			}
		print "# " n_edges + 0 " uses of symbols of other rooms"
		exit bad
	}'
