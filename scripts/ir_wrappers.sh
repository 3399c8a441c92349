#!/bin/sh
# ir_wrappers.sh - writes jit/ir/ir_wrappers.h, the functions that emit a row of the IR whose operands are registers and
# at most one integer, from the tables that say what a row is: jit/ir/ops.def and jit/ir/types.def.
#
#   scripts/ir_wrappers.sh            rewrite the header
#   scripts/ir_wrappers.sh --check    change nothing; exit status 1 when the header differs from the tables
#
# Rows with lanes, strides or constants of floats take their arguments in other forms: ir_build*.h have these.
set -eu

check=
case "${1-}" in
'') ;;
--check) check=1 ;;
*)
	echo "ir_wrappers.sh: unknown option '$1'; the only one is --check" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/.."
header=jit/ir/ir_wrappers.h
new=$(mktemp)
trap 'rm -f "$new"' EXIT

awk '
	function trim(s) { gsub(/^[ \t\n]+|[ \t\n]+$/, "", s); return s }
	# The parts of a text between commas that stand in no parentheses and no string.
	function split_args(e, part,  n, i, ch, depth, quoted, from)
	{
		n = depth = quoted = 0
		from = 1
		for (i = 1; i <= length(e); i++) {
			ch = substr(e, i, 1)
			if (ch == "\"")
				quoted = !quoted
			if (quoted)
				continue
			depth += (ch == "(") - (ch == ")")
			if (ch == "," && depth == 0) {
				part[++n] = trim(substr(e, from, i - from))
				from = i + 1
			}
		}
		part[++n] = trim(substr(e, from))
		return n
	}
	# The row up to the parenthesis that closes it; "" when it goes on in the next line.
	function whole(e,  i, ch, depth, quoted)
	{
		for (i = index(e, "("); i <= length(e); i++) {
			ch = substr(e, i, 1)
			if (ch == "\"")
				quoted = !quoted
			if (quoted)
				continue
			depth += (ch == "(") - (ch == ")")
			if (depth == 0)
				return substr(e, index(e, "(") + 1, i - index(e, "(") - 1)
		}
		return ""
	}
	# The letter of an operand of a row of that type, as rows.h has it.
	function operand(o, type)
	{
		if (o == "v") return letter[lane[type]]
		if (o == "w") return letter[ints[type]]
		if (o == "x") return letter[bits[type]]
		if (o == "d") return letter[difference[type]]
		if (o == "q") return letter[condition[type]]
		return letter[o]
	}
	function order(row, operands, names)
	{
		return "#define ir_" row "(" names ") IR_LAST_FIRST_" operands "(ir_" row ", " names ")"
	}
	function wrapper(row, type, dst, a, b, c, imm,  text)
	{
		if (dst == "_")
			return
		text = row ", " operand(dst, type)
		if (a != "_") text = text ", " operand(a, type)
		if (b != "_") text = text ", " operand(b, type)
		if (c != "_") text = text ", " operand(c, type)
		if (imm == "_") {
			operands = (a != "_") + (b != "_") + (c != "_")
			functions[++n_functions] = "IR_W" operands "(" text ")"
			if (operands >= 2)
				orders[++n_orders] = order(row, operands, operands == 2 ? "b, x, y" : "b, x, y, z")
		} else if (a == "_" && (imm == "i" || imm == "k" && type != "f32" && type != "f64" && type != "t")) {
			functions[++n_functions] = "IR_WC(" text ")"
		} else if (a != "_" && b == "_" && (imm == "i" || imm == "d")) {
			functions[++n_functions] = "IR_WI(" text ")"
		}
	}
	FILENAME ~ /types.def$/ && /^TYPE\(/ {
		split_args(whole($0), part)
		letter[part[1]] = substr(part[2], 2, 1)
		lane[part[1]] = part[3]
		ints[part[1]] = part[4]
		bits[part[1]] = part[5]
		difference[part[1]] = part[6]
		condition[part[1]] = part[7]
	}
	FILENAME !~ /ops.def$/ { next }
	/^OPS?(_BY_HAND)?\(/ { text = ""; open = 1; many = /^OPS/ }
	open {
		text = text " " $0
		inside = whole(text)
		if (inside == "")
			next
		open = 0
		n = split_args(inside, part)
		if (!many)
			wrapper(part[1], "_", part[2], part[3], part[4], part[5], part[6])
		# Variables are made and written by ir_var_f() and the like.
		for (i = 11; many && part[1] != "mov" && i <= n; i++) {
			split(substr(part[i], 2, length(part[i]) - 2), pair, /, */)
			wrapper(pair[1], pair[2], part[2], part[3], part[4], part[5], part[6])
		}
	}
	END {
		print "/* jit/ir/ir_wrappers.h - the functions that emit a row whose operands are registers and at most"
		print " * one integer."
		print " *"
		print " * Written by scripts/ir_wrappers.sh from jit/ir/ops.def. Do not edit. ir_build.h includes it"
		print " * and says how the functions are named."
		print " */"
		print "#ifndef JIT_IR_WRAPPERS_H"
		print "#define JIT_IR_WRAPPERS_H"
		print ""
		print "/* clang-format off */"
		for (i = 1; i <= n_functions; i++)
			print functions[i]
		print "\n/* ir_build.h says why operands are evaluated in this order. */"
		for (i = 1; i <= n_orders; i++)
			print orders[i]
		print "/* clang-format on */\n\n#endif"
	}' jit/ir/types.def jit/ir/ops.def > "$new"

if [ "$check" ]; then
	cmp -s "$new" "$header" || {
		echo "$header differs from jit/ir/ops.def; run scripts/ir_wrappers.sh" >&2
		exit 1
	}
else
	cp "$new" "$header"
fi
