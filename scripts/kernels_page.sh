#!/bin/sh
# kernels_page.sh - writes docs/kernel-templates.md, what every kind of kernel reads and writes, from the table that
# says so: kernels-templates/kinds/signature.def.
#
#   scripts/kernels_page.sh            rewrite the page
#   scripts/kernels_page.sh --check    change nothing; exit status 1 when the page differs from the table
#
# A kind's comment becomes its text. Expressions become words: "IF(HAS(BIAS), READ)" is "with BIAS: read". What a unit
# touches stays a formula; a function of signature_spans.h is named.
set -eu

check=
case "${1-}" in
'') ;;
--check) check=1 ;;
*)
	echo "kernels_page.sh: unknown option '$1'; the only one is --check" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/.."
table=kernels-templates/kinds/signature.def page=docs/kernel-templates.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT

cat > "$new" <<'MD'
# Kernels

<!-- Written by scripts/kernels_page.sh from kernels-templates/kinds/signature.def. Do not edit. -->

What a launch of each kind of kernel computes, and what it reads and writes. A launch has a key (`jit/key.h`), argument
slots of 64 bits each (the enums of `kernels-templates/templates.h`), and work units, numbered from 0. What is computed,
to the bit, is `kernels-templates/numerics.h`. The tables are data that the library reads, too
(`kernels-templates/signature.h`), and `tests/kernels/t_signature.c` holds every load and store of random kernels
against them.

Columns are tokens. kp(n) is n rounded up to a multiple of 32. A row of activations of width n has kp(n) elements, pads
+0; int8 activations have kp(n) bytes a column, with a `struct activation_block` for each 32. All activation buffers
are 64-byte aligned and have at least 256 readable (and ignorable) bytes behind them.

- **Access**: "value" means that the slot holds the operand itself, otherwise its address. "Update" reads what is there
  and writes it anew. "Some" of the bytes are touched: which of them, data or positions decide. "Dataflow" arguments
  are awaited word by word, or given, in kernels with AWAITED.
- **Layout**: scalar; vector: parameters that are the same for all columns; rows: column by column; panels: as
  KEY_INTERLEAVE lays columns; packed: blocks of 32 rows of a matrix, `weight_block_bytes()` each, lane = row, missing
  rows of the last block 0 (what a block looks like inside is the target's: `enum weight_layout`); stack: matrices of
  one size, of which data choose; picked: rows of one matrix, which data choose; table: of addresses of pages; pages:
  that many bytes behind each page's address; records: what attention leaves of each chunk; state: of fixed size,
  carried from pass to pass; routes: [token][32], or groups of slots. Values that a launch's size follows from have a
  layout of their own: columns, tiles, position.
- **A unit touches** these bytes, `u` being its number: "128 at u * 128" is one piece; "4 at u * 4, 7 times, 64 apart"
  are several. A name ending in () is a function of `kernels-templates/kinds/signature_spans.h`.

The KV cache of a layer has elements of F16, F32 or Q8_0 and lies in pages of 128 positions, which may be anywhere: a
table has their addresses by number of the page, with one readable entry more than there are pages, and 256 readable
bytes behind each page. A page holds several layers; keys of a layer lie KEYS bytes behind its address, values VALUES
bytes. Keys are [kv_head][4][head_dim][32], with a position in each lane; values are [kv_head][128][head_dim], with a
dimension in each lane. A latent cache has keys of one head alone. Q8_0: keys are [kv_head][4] of, for each 32
dimensions (the last ones may be fewer), [32] f32 scales and [dimensions/4 rounded up][32] words of four int8, the
lowest dimension in the low byte; values are [kv_head][128] of [head_dim/32 rounded up] f32 scales and [head_dim rounded
up to 4] int8. Cards keep F16 in vectors of 16 bytes (`template_kv_octets()`).
MD

# shellcheck disable=SC2016
awk '
	# Where the parenthesis that opens at `from` closes.
	function closing(e, from,  depth, i, ch)
	{
		for (i = from; i <= length(e); i++) {
			ch = substr(e, i, 1)
			depth += (ch == "(") - (ch == ")")
			if (depth == 0)
				return i
		}
		return 0
	}
	function trim(e) { gsub(/^[ \t\n]+|[ \t\n]+$/, "", e); return e }
	# The first place of `op` outside of parentheses and quotes; 0: none.
	function outside(e, op,  i, depth, ch, quoted)
	{
		for (i = 1; i <= length(e); i++) {
			ch = substr(e, i, 1)
			if (ch == "\"")
				quoted = !quoted
			if (quoted)
				continue
			if (depth == 0 && substr(e, i, length(op)) == op)
				return i
			depth += (ch == "(") - (ch == ")")
		}
		return 0
	}
	function split_args(e, part,  n, at)
	{
		n = 0
		while ((at = outside(e, ",")) > 0) {
			part[++n] = trim(substr(e, 1, at - 1))
			e = substr(e, at + 1)
		}
		part[++n] = trim(e)
		return n
	}
	function called(e, name) { return index(e, name "(") == 1 && closing(e, length(name) + 1) == length(e) }
	function inner(e, name) { return trim(substr(e, length(name) + 2, length(e) - length(name) - 2)) }
	function bare(e)
	{
		e = trim(e)
		while (substr(e, 1, 1) == "(" && closing(e, 1) == length(e))
			e = trim(substr(e, 2, length(e) - 2))
		return e
	}
	# A condition.
	function condition(e,  at)
	{
		e = bare(e)
		if (e ~ /^!\(HAS\(AWAITED\) && HAS\(QUANTISED_OUT\)\)$/)
			return "unless AWAITED and QUANTISED_OUT"
		if ((at = outside(e, " || ")) > 0)
			return condition(substr(e, 1, at - 1)) " or " condition(substr(e, at + 4))
		if ((at = outside(e, " && ")) > 0)
			return condition(substr(e, 1, at - 1)) ", " condition(substr(e, at + 4))
		if (substr(e, 1, 1) == "!")
			return "without " simple(substr(e, 2))
		return (e ~ /[<>] / ? "where " : "with ") simple(e)
	}
	function simple(e)
	{
		e = trim(e)
		gsub(/HAS\(/, "", e)
		gsub(/\)/, "", e)
		gsub(/k->/, "", e)
		sub(/IS_INT8/, "int8 activations", e)
		sub(/GROUPED/, "groups of EXPERTS", e)
		sub(/IS_NARROW/, "rounding alone", e)
		return e
	}
	# An access, a type or a layout.
	function words(e,  part, n, at, rest, colon, a, b)
	{
		e = bare(e)
		if (called(e, "HANDED"))
			return words(inner(e, "DATAFLOW")) "; dataflow"
		if (called(e, "IF")) {
			n = split_args(inner(e, "IF"), part)
			a = part[1]
			b = words(part[2])
			return b == "some" ? b " " condition(a) : condition(a) ": " b
		}
		if ((at = outside(e, " ? ")) > 0) {
			rest = substr(e, at + 3)
			colon = outside(rest, " : ")
			a = words(substr(rest, 1, colon - 1))
			b = words(substr(rest, colon + 3))
			return a " " condition(substr(e, 1, at - 1)) ", else " b
		}
		if ((at = outside(e, " | ")) > 0)
			return words(substr(e, 1, at - 1)) "; " words(substr(e, at + 3))
		return e in word ? word[e] : tolower(e)
	}
	function formula(e)
	{
		gsub(/[ \t\n]+/, " ", e)
		while (match(e, /a\[[A-Z_0-9]+\]/)) {
			sub("a\\[" kind "_[A-Z_0-9]+\\]", substr(e, RSTART + 2 + length(kind) + 1, \
			                                         RLENGTH - 4 - length(kind)), e)
		}
		gsub(/pad32\(/, "kp(", e)
		gsub(/k->/, "", e)
		gsub(/4ull/, "4", e)
		while (match(e, /[^a-z_]row\(/) || match(e, /^row\(/))
			sub(/row\(/, "4 * kp(", e)
		gsub(/SLOTS_BYTES/, "128", e)
		gsub(/IS_INT8/, "int8", e)
		gsub(/HAS_HALVES/, "16 bits", e)
		gsub(/HAS\(LATENT\)/, "LATENT", e)
		return trim(e)
	}
	function span(e,  part, n, at, rest, colon)
	{
		e = bare(e)
		if (e == "NOWHERE")
			return ""
		if ((at = outside(e, " ? ")) > 0) {
			rest = substr(e, at + 3)
			colon = outside(rest, " : ")
			return span(substr(rest, 1, colon - 1)) " " condition(substr(e, 1, at - 1)) "; " \
			       span(substr(rest, colon + 3))
		}
		if (called(e, "AT")) {
			split_args(inner(e, "AT"), part)
			return formula(part[2]) " at " formula(part[1])
		}
		if (called(e, "EACH")) {
			split_args(inner(e, "EACH"), part)
			if (part[3] == "1")
				return formula(part[2]) " at " formula(part[1])
			return formula(part[2]) " at " formula(part[1]) ", " \
			       (part[3] == "0" ? "as often as data say" : formula(part[3]) " times") ", " \
			       formula(part[4]) " apart"
		}
		sub(/\(.*/, "()", e)
		return e
	}
	# A cell of a table has no bar.
	function cell(e) { gsub(/\|/, "\\|", e); return e == "" ? " |" : " " e " |" }
	function put_row(e,  part, n, meaning)
	{
		n = split_args(e, part)
		kind = part[1]
		meaning = part[7]
		gsub(/^"|"$/, "", meaning)
		if (n != 7) {
			print "kernels_page.sh: a row of " kind " has " n " fields, expected 7" > "/dev/stderr"
			exit 1
		}
		if (!begun) {
			print ""
			print "| Slot | Access | Type | Layout | A unit touches, in bytes | Meaning |"
			print "| --- | --- | --- | --- | --- | --- |"
			begun = 1
		}
		print "|" cell(part[2]) cell(words(part[3])) cell(words(part[4])) cell(words(part[5])) \
		      cell(span(part[6])) cell(meaning)
	}
	BEGIN {
		word["F32"] = "f32"; word["I32"] = "i32"; word["INT8"] = "int8"; word["HALF"] = "16 bits"
		word["BLOCK"] = "`activation_block`"; word["GROUP"] = "`route_group`"; word["ADDRESS"] = "address"
		word["WEIGHT"] = "weights"; word["CACHED"] = "cached"; word["COUNT"] = "number"
		word["ACTIVATION"] = "as the activations"
	}
	/^\/\* KEY_/ { text = ""; intext = 1 }
	intext {
		line = $0
		done = sub(/ \*\/$/, "", line)
		if (sub(/^\/\* KEY_/, "", line)) {
			kind = line
			sub(/:.*/, "", kind)
			sub(/^[A-Z_]+: /, "", line)
			print ""
			print "## KEY_" kind
			print ""
			begun = titled = 0
		} else {
			sub(/^ \* ?/, "", line)
		}
		if (begun == 0 && line != "" && !titled++)
			line = toupper(substr(line, 1, 1)) substr(line, 2)
		print line
		if (done)
			intext = 0
		next
	}
	/^ARG\(/ { row = "" }
	/^ARG\(/ || row != "" {
		row = row " " $0
		at = index(row, "(")
		if (closing(row, at) > 0) {
			put_row(substr(row, at + 1, closing(row, at) - at - 1))
			row = ""
		}
	}' "$table" >> "$new"

if [ "$check" ]; then
	cmp -s "$new" "$page" || {
		echo "$page differs from $table; run scripts/kernels_page.sh" >&2
		exit 1
	}
else
	cp "$new" "$page"
fi
