#!/bin/sh
# tests/programs/t_docs.sh - the documentation that make install copies: the licence is there, and every link in it
# leads to a file that is, as are the numbers of all tables.
. "${srcdir:-.}/tests/support/prelude.sh"
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s install-nobase_dist_docDATA DESTDIR="$dir/root" > "$dir/out" 2>&1
check "make install: $(tail -n 3 "$dir/out")" [ $? = 0 ]
doc=$(find "$dir/root" -name LICENSE -exec dirname {} \;)
check "the licence, the README and the changelog are there" [ -f "$doc/LICENSE" -a -f "$doc/README.md" -a -f \
	"$doc/CHANGELOG.md" ]
check "examples are there" [ "$(ls "$doc"/docs/examples/*.c | wc -l)" -ge 6 ]
find "$doc" -name '*.md' > "$dir/pages"
links=0
while read -r page; do
	for link in $(grep -o '](\([^)# ]*\)[)#]' "$page" | sed 's/^](//; s/[)#]$//' | grep -v '^[a-z]*://'); do
		links=$((links + 1))
		check "${page#"$doc"/} links to $link, which is installed" [ -e "$(dirname "$page")/$link" ]
	done
done < "$dir/pages"
tables=0
for name in $(grep -rho '<!-- results/[^ ]*' "$doc/docs/performance" | sed 's/^<!-- //' | sort -u); do
	tables=$((tables + 1))
	check "docs/performance/$name is installed" [ -f "$doc/docs/performance/$name" ]
done
check "there are tables" [ $tables -ge 20 ]
check "there are links" [ $links -ge 15 ]
finish
