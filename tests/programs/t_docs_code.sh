#!/bin/sh
# tests/programs/t_docs_code.sh - what the documents show as code: each block of C is compiled against the public
# headers, and each option of a program in a command is one that this program has.
. "${srcdir:-.}/tests/support/prelude.sh"
cc=${CC:-cc}
programs="jitrun jitserve jitk"
[ ! -x ./jitpull ] || programs="$programs jitpull"
for program in $programs; do
	./$program --help-all > "$dir/$program" 2>&1
	check "$program --help-all" [ $? = 0 ]
done
./jitrun doctor --help-all >> "$dir/jitrun" 2>&1
check "jitrun doctor --help-all" [ $? = 0 ]
set -- "$top"/README.md "$top"/docs/*.md "$top"/docs/performance/*.md
echo 'int main(void) { return 0; }' > "$dir/one.c"
if $cc -fsyntax-only "$dir/one.c" 2> /dev/null; then
	# A block without functions of its own stands in one, where the names that documents use are known.
	awk -v dir="$dir" '
		FNR == 1 { name = FILENAME; gsub(/.*\//, "", name); inside = 0 }
		/^```/ && inside { inside = 0; close(file); next }
		/^```c$/ { inside = 1; file = sprintf("%s/%s-%d.body", dir, name, FNR); printf "" > file; next }
		inside { print > file }' "$@"
	blocks=0
	for body in "$dir"/*.body; do
		[ -f "$body" ] || continue
		blocks=$((blocks + 1))
		whole="${body%.body}.c"
		if grep -q '^int main' "$body"; then
			cp "$body" "$whole"
		else
			{
				for header in "$top"/include/jitrun*.h; do
					echo "#include \"$(basename "$header")\""
				done
				echo '#define MOST 16'
				given='jit_model *m, jit_sampling sampling, int32_t *ids, size_t n, jit_session **ready'
				given="$given, size_t n_ready, int32_t id, jit_error err"
				echo "void shown($given);"
				echo "void shown($given)"
				echo '{'
				cat "$body"
				echo '}'
			} > "$whole"
		fi
		$cc -std=c11 -fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror -I"$top/include" "$whole" \
			2> "$dir/err"
		check "$(basename "$whole") compiles: $(head -n 3 "$dir/err")" [ $? = 0 ]
	done
	check "there are blocks of C" [ $blocks -ge 1 ]
else
	echo "# there is no C compiler: blocks of C are not compiled"
fi
# Of each line of a block, or of a piece of code in a sentence, that begins with a program: its options.
awk '
	function take(text,    n, part, i, word, program) {
		sub(/ #.*/, "", text)
		n = split(text, part, /[ \t]+/)
		for (i = 1; i <= n; i++) {
			word = part[i]
			if (word ~ /^(\.\/)?(build\/)?jit(run|serve|k)$/) {
				program = word
				gsub(/.*\//, "", program)
				if (part[i + 1] == "pull") program = "jitpull"
			} else if (word ~ /^(\||&&|;|>|-- )/) {
				program = ""
			} else if (program && word ~ /^--[a-z]/) {
				sub(/[=\]),.`].*/, "", word)
				print FILENAME, program, word
			}
		}
	}
	FNR == 1 { inside = 0; held = "" }
	/^[ \t]*```/ { inside = !inside; next }
	inside || /^    / {
		line = $0
		sub(/^[ \t]*(\$ )?/, "", line)
		if (line ~ /\\$/) { held = held substr(line, 1, length(line) - 1); next }
		take(held line)
		held = ""
		next
	}
	{
		n = split($0, code, "`")
		for (i = 2; i <= n; i += 2) take(code[i])
	}' "$@" | sort -u > "$dir/options"
options=0
while read -r page program option; do
	# One is shown as a slip, and one as what is refused.
	case "$(basename "$page") $option" in
	"first-session.md --promt" | "first-session.md --control-vector") continue ;;
	esac
	[ -f "$dir/$program" ] || continue # it is not in this build
	options=$((options + 1))
	check "$(basename "$page"): $program has $option" grep -qE -e "(^|[ ,])$option([ =,[]|\$)" "$dir/$program"
done < "$dir/options"
check "there are options ($options)" [ $options -ge 50 ]
finish
