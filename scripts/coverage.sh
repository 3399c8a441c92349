#!/bin/sh
# scripts/coverage.sh BUILD - of a build directory that was compiled with --coverage and has run tests: how many lines
# of each room's C files were executed, the least covered room first, and the sum. A room is a folder with C files.
#
# gcov alone is asked. A file that is compiled several times, as what simulates cards is, counts with its best object.
set -eu
cd "$1"
find . -name '*.gcda' | sort | xargs -n 100 gcov -n 2>/dev/null | awk '
	/^File / {
		file = $2
		gsub(/\047|^\047?(\.\.\/)+/, "", file)
		next
	}
	/^Lines executed:/ && file != "" {
		split($2, part, /[:%]/)
		lines = $NF
		hit = part[2] * lines / 100
		if (file ~ /\/.*\.c$/ && file !~ /^(\/|tests\/|docs\/|bindings\/)/) {
			of[file] = lines
			if (hit > best[file])
				best[file] = hit
		}
		file = ""
	}
	END {
		for (file in of) {
			room = file
			sub(/\/[^\/]*$/, "", room)
			n[room] += of[file]
			got[room] += best[file]
		}
		for (room in n) {
			printf "%5.1f %% of %5d lines  %s\n", 100 * got[room] / n[room], n[room], room
			all += n[room]
			sum += got[room]
		}
		if (all)
			printf "100.1 %5.1f %% of %5d lines in all\n", 100 * sum / all, all
	}' | sort -n | sed 's/^100\.1 //'
