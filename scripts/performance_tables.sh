#!/bin/sh
# performance_tables.sh - writes the tables of docs/performance/ from the numbers in docs/performance/results/.
#
#   scripts/performance_tables.sh            rewrite the pages
#   scripts/performance_tables.sh --check    change nothing; exit status 1 when a page differs from its numbers
#
# A page holds a table between two lines:
#
#   <!-- results/NAME.csv threads=2 isa=avx2 -->
#   <!-- end -->
#
# Conditions such as threads=2 choose rows and may be left out. A file with a column "test" gives a row of the table for
# each model and number of threads, and a column for each test; repeated measurements stand side by side in a cell. A
# cell without a number is an error. Any other file becomes a table as it is, but for what the page says in words: date,
# commit, machine, cpu and note. Fields have no commas and no quotes. A column NAME_low and one NAME_high are the least
# and the most of NAME.
set -eu

die() {
	echo "performance_tables.sh: $1" >&2
	exit 2
}

check=
case "${1-}" in
'') ;;
--check) check=1 ;;
*) die "unknown option '$1'; the only one is --check" ;;
esac
cd "$(dirname "$0")/../docs/performance"
page_out=$(mktemp)
trap 'rm -f "$page_out"' EXIT

# shellcheck disable=SC2016
render='
function die(sentence)
{
	print "performance_tables.sh: " sentence > "/dev/stderr"
	failed = 2
	exit 2
}

# The field of the row at hand, empty where the file has no such column.
function get(name)
{
	return name in column ? field[column[name]] : ""
}

function append(text, more, between)
{
	return text == "" ? more : more == "" ? text : text between more
}

# One quantity with its unit: "1.2x", "1.1x to 1.3x" or "1.2x (1.1 to 1.3)".
function quantity(value, low, high, unit)
{
	if (low == "")
		return value == "" ? "" : value unit
	return value == "" ? low " to " high unit : value unit " (" low " to " high ")"
}

function cell(text, own)
{
	own = get("llama_cpp_tokens_per_second")
	text = append(text, get("tokens_per_second"), "")
	text = append(text, quantity(get("ratio"), get("ratio_low"), get("ratio_high"), "x"), ", ")
	text = append(text, quantity(get("share_percent"), get("share_low"), get("share_high"), " %"), ", ")
	if (get("memory_gb_s") != "")
		text = text " at " get("memory_gb_s") " GB/s"
	if (own != "")
		text = append(text, "llama.cpp " own, ", ")
	if (get("pytorch_tokens_per_second") != "")
		text = append(text, "PyTorch " get("pytorch_tokens_per_second"), ", ")
	return text
}

function chosen(    i, part)
{
	for (i = 1; i <= conditions; i++) {
		split(condition[i], part, "=")
		if (!(part[1] in column))
			die(page ": " file " has no column " part[1])
		if (get(part[1]) != part[2])
			return 0
	}
	return 1
}

function read_row(line,    n)
{
	if (line ~ /"/)
		die(file ": a quote in \"" line "\"")
	n = split(line, field, ",")
	if (n != columns)
		die(file ": " n " fields, not " columns ", in " line)
}

function pivot(    line, row, test, rows, tests, i, j, text, name, names, known, cells, test_known)
{
	while ((getline line < file) > 0) {
		read_row(line)
		if (!chosen())
			continue
		row = get("model") " " get("weights") " | " get("threads")
		test = get("test")
		if (!(row in known)) {
			known[row] = 1
			name[++rows] = row
		}
		if (cell("") == "")
			die(file ": no column that a cell shows has a number in " line)
		if (!(test in test_known)) {
			test_known[test] = 1
			names[++tests] = test
		}
		cells[row, test] = append(cells[row, test], cell(""), "; ")
	}
	if (!rows)
		die(page ": no row of " file " is chosen")
	text = "| model | threads |"
	for (j = 1; j <= tests; j++)
		text = text " " names[j] " |"
	print text
	text = "|---|---:|"
	for (j = 1; j <= tests; j++)
		text = text "---|"
	print text
	for (i = 1; i <= rows; i++) {
		text = "| " name[i] " |"
		for (j = 1; j <= tests; j++)
			text = text " " cells[name[i], names[j]] " |"
		print text
	}
}

function one_field(i)
{
	return quantity(field[i], get(heading[i] "_low"), get(heading[i] "_high"), "")
}

function plain(    line, i, text, rule, low)
{
	text = rule = "|"
	for (i = 1; i <= columns; i++) {
		shown[i] = heading[i] !~ /^(date|commit|machine|cpu|note)$|_(low|high)$/
		if (shown[i]) {
			line = heading[i]
			if (line !~ /[0-9]/)
				gsub(/_/, " ", line)
			sub(/llama cpp/, "llama.cpp", line)
			text = text " " line " |"
			rule = rule "---|"
		}
	}
	print text
	print rule
	while ((getline line < file) > 0) {
		read_row(line)
		if (!chosen())
			continue
		text = "|"
		for (i = 1; i <= columns; i++)
			if (shown[i])
				text = text " " one_field(i) " |"
		print text
	}
}

function table(    line, i, word, words)
{
	words = split($0, word, " ")
	file = word[2]
	conditions = words - 3
	for (i = 1; i <= conditions; i++)
		condition[i] = word[i + 2]
	split("", column)
	if ((getline line < file) <= 0)
		die(page ": cannot read " file)
	columns = split(line, heading, ",")
	for (i = 1; i <= columns; i++)
		column[heading[i]] = i
	if ("test" in column)
		pivot()
	else
		plain()
	close(file)
}

/^<!-- results\/.*\.csv.* -->$/ {
	if (inside)
		die(page ": a table begins in another: " $0)
	print
	table()
	inside = 1
	next
}
/^<!-- end -->$/ {
	if (!inside)
		die(page ": an end without a table")
	inside = 0
}
!inside
END {
	if (!failed && inside)
		die(page ": a table without an end")
	exit failed
}
'

status=0
for page in README.md log/*.md lessons/*.md; do
	awk -v page="$page" "$render" "$page" >"$page_out" || die "$page was not rendered"
	cmp -s "$page_out" "$page" && continue
	if [ -n "$check" ]; then
		echo "docs/performance/$page differs from its numbers; run scripts/performance_tables.sh" >&2
		status=1
	else
		cat "$page_out" >"$page"
	fi
done
exit $status
