#!/bin/sh
# tests/programs/t_man.sh - the man pages: groff has nothing to warn of, section 3 has every function and struct of the
# headers, and section 1 what every page has.
. "${srcdir:-.}/tests/support/prelude.sh"
serve=; [ ! -x jitserve ] || serve=jitserve # built where libmicrohttpd is
headers=$(ls "$top"/include/jitrun*.h)
functions=$(sed -n 's/^[a-z].*[ *]\(jit_[a-z_]*\)(.*/\1/p' $headers)
structs=$(sed -n 's/^} \(jit_[a-z_]*\);$/\1/p' $headers)
check "the headers declare functions" [ "$(echo "$functions" | wc -l)" -ge 30 ]
for name in $functions $structs; do
	check "jitrun.3 has $name" grep -q "$name" jitrun.3
done
for header in $headers; do
	check "jitrun.3 names ${header##*/}" grep -qF "#include <${header##*/}>" jitrun.3
done
for section in MODEL SESSION CONVERSATIONS "GRAPHICS CARDS" GRAMMARS BATCHES VOCABULARIES; do
	check "jitrun.3 has one section $section" [ "$(grep -cx "\.SH $section" jitrun.3)" = 1 ]
done
check "no heading comes twice: $(grep '^\.SH' jitrun.3 | sort | uniq -d)" [ \
	"$(grep '^\.SH' jitrun.3 | sort | uniq -d | wc -l)" = 0 ]
sed -n '/^\.SH NAME/{n;p;q}' jitrun.3 | sed 's/ \\- .*//' | tr -d , | tr ' ' '\n' > "$dir/names"
for name in $functions; do
	check "jitrun.3 is found by the name $name" grep -qx "$name" "$dir/names"
done
check "nothing of comments is left in jitrun.3" sh -c '! grep -n "^ \* \|^\*/" jitrun.3'
day=$(sed -n 's/.*version_day.*"\(.*\)";/\1/p' programs/commit.c)
for page in jitrun jitwarm jitbench jitquant jitk jitgraph jitopt jiteml jittrain $serve; do
	for section in NAME SYNOPSIS DESCRIPTION OPTIONS EXAMPLES "EXIT STATUS" ENVIRONMENT FILES "SEE ALSO"; do
		check "$page.1 has $section" grep -qxE "\.SH \"?$section\"?" $page.1
	done
	check "$page.1 has its day: $(head -n 1 $page.1)" grep -q "^\.TH [A-Z]* 1 \"$day\" \"jitrun [0-9.]*\"" $page.1
done
check "jitrun.3 has its day: $(head -n 1 jitrun.3)" grep -q "^\.TH JITRUN 3 \"$day\" \"jitrun [0-9.]*\"" jitrun.3
if command -v groff > /dev/null; then
	for page in jitrun.3 jitrun.1 jitwarm.1 jitbench.1 jitquant.1 jitk.1 jitgraph.1 jitopt.1 jiteml.1 \
		jittrain.1 ${serve:+jitserve.1}; do
		said=$(groff -ww -man -z $page 2>&1)
		check "groff reads $page: $(echo "$said" | head -c 300)" [ -z "$said" ]
	done
fi
finish
