#!/bin/sh
# tests/programs/t_words.sh - scripts/words.sh refuses retired words, names that nothing has, and guards that are
# shared or those of other files, and takes what is right.
. "${srcdir:-.}/tests/support/prelude.sh"
if ! git -C "$top" ls-files --error-unmatch scripts/words.sh >/dev/null 2>&1; then
	echo "# skipped: the sources are no git checkout"
	exit 77
fi
run() { "$top/scripts/words.sh" "$@" > "$dir/out" 2> "$dir/err"; status=$?; }
# The sample $dir/NAME, and what is said of each of its lines: complaint NAME LINE TEXT.
sample() { printf "$2" > "$dir/$1"; samples="$samples $dir/$1"; }
complaint() { echo "$dir/$1:$2: $3" >> "$dir/want"; }

samples=
retired='"hopeful" is retired; write: satisfiable, can still succeed'
sample a.c '/* A hopeful value. */\nint x;\n'
complaint a.c 1 "$retired"
sample b.c 'int x; // Hopeful\n'
complaint b.c 1 "$retired"
sample c.h '/* One\n * line, hopeful,\n * and more. */\n'
complaint c.h 2 "$retired"
sample d.md '# Title\n\nA text that is hopeful.\n'
complaint d.md 3 "$retired"
sample e.sh '#!/bin/sh\nx=1\n# hopeful\n'
complaint e.sh 3 "$retired"
gone=gone_with # in two parts: the words of this script are names of the tree
sample g.c "/* As ${gone}_the_wind() does. */\n"
complaint g.c 1 "no symbol ${gone}_the_wind()"
complaint g.c 1 "no name ${gone}_the_wind"
sample h.c "int x; /* Of\n * x->n_${gone}[i]. */\n"
complaint h.c 2 "no name n_${gone}"
sample i.c "/* See $gone.c and runtime/$gone.h. */\n"
complaint i.c 1 "no file $gone.c"
complaint i.c 1 "no file runtime/$gone.h"
sample j.md "See \`plan_of_$gone()\`.\n"
complaint j.md 1 "no symbol plan_of_$gone()"
sample k.h '#ifndef OTHER_H\n#define OTHER_H\n#endif\n'
echo "$dir/k.h: the guard OTHER_H does not have the file's name" >> "$dir/want"
sample p.h '#ifndef TWO_P_H\n#define TWO_P_H\n#endif\n'
mkdir "$dir/two"
sample two/p.h '#ifndef TWO_P_H\n#define TWO_P_H\n#endif\n'
echo "the guard TWO_P_H is that of several files: $dir/p.h $dir/two/p.h" >> "$dir/want"
# A release stays as it was written; what is to come does not.
sample CHANGELOG.md '## [Unreleased]\n\nhopeful\n\n## [0.1.0]\n\nhopeful\n'
complaint CHANGELOG.md 3 "$retired"
run $samples
check "the samples are refused: status $status, $(cat "$dir/err")" [ "$status" = 1 ]
sort "$dir/want" > "$dir/sorted"
sort "$dir/out" > "$dir/said"
check "what is said: $(diff "$dir/sorted" "$dir/said")" cmp -s "$dir/sorted" "$dir/said"

samples=
sample l.c '/* Kind, akin, kin_x_or. */\nchar *kin = "kin /* kin */"; int kin_x_or;\n'
sample m.c '/* plan_build() of runtime/plan/plan.c, plan.h, PLAN_, share_i; v_mov of NAME.c; stdio.h; ./check.sh. */\n'
sample n.c "/* ${gone}_the_wind */\nint ${gone}_the_wind;\n"
sample o.h '#ifndef ROOM_O_H\n#define ROOM_O_H\n#endif\n'
run $samples
check "what is right is taken: status $status, $(cat "$dir/out" "$dir/err")" [ "$status" = 0 ]
# Words that names of some folders no longer have, in a tree of its own: in code alone, and as whole parts of names.
tree=$dir/tree
mkdir -p "$tree/scripts" "$tree/chat/old" "$tree/jit"
cp "$top/scripts/words.sh" "$top/scripts/words.awk" "$tree/scripts/"
echo 'names chat/ !chat/old/: turn(ed)? -> iteration' > "$tree/scripts/words.txt"
printf 'int turn_of;\nint x; /* turn_of */\nchar *s = "turned turn";\nint saturn, turnip, TURNED;\n' > "$tree/chat/a.c"
printf 'int turn;\n' > "$tree/jit/a.c"
printf 'int turn;\n' > "$tree/chat/old/a.c"
git -C "$tree" init -q && git -C "$tree" add .
(cd "$tree" && scripts/words.sh chat/a.c chat/old/a.c jit/a.c) > "$dir/out" 2>&1
check "names are refused: $(cat "$dir/out")" [ "$?" != 0 ]
printf 'chat/a.c:%s: the name %s has a retired word; write: iteration\n' 1 turn_of 4 TURNED > "$dir/want"
check "where: $(diff "$dir/want" "$dir/out")" cmp -s "$dir/want" "$dir/out"
finish
