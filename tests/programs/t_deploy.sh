#!/bin/sh
# tests/programs/t_deploy.sh - docs/DEPLOYMENT.md, followed: its Containerfile's steps in plain directories that are
# then only read, by another user where this is root.
. "${srcdir:-.}/tests/support/prelude.sh"
here=$(pwd)
doc=$top/docs/DEPLOYMENT.md

# ---- the Containerfile: its lines, with paths below $dir
sed -n '/^FROM debian:bookworm AS build/,/^ENTRYPOINT/p' "$doc" > "$dir/Containerfile"
line() { sed -n "s|^$1||p" "$dir/Containerfile" | sed "s|/models/|$dir/models/|g; s|/kernels/|$dir/kernels/|g"; }
warm=$(line 'RUN jitwarm ')
cache=$(line 'ENV JITRUN_CACHE=')
entry=$(line 'ENTRYPOINT ' | tr -d '[],"')
user=$(line 'USER ')
check "the Containerfile warms, names the cache, a user and an entry" [ -n "$warm" -a -n "$cache" -a -n "$user" -a -n \
	"$entry" ]
for from in /models/ /kernels/; do
	check "the image gets $from from the build" grep -q "^COPY --from=build $from $from\$" "$dir/Containerfile"
done
for package in $(sed -n 's/^RUN .*apt-get install -y \(lib.*\)$/\1/p' "$dir/Containerfile"); do
	stem=$(echo "$package" | sed 's/[-0-9]*$//')
	check "$package is what the build's $stem links" grep -q "^RUN .* $stem[-0-9a-z]*-dev" "$dir/Containerfile"
done

mkdir "$dir/bin" "$dir/models" "$dir/kernels" "$dir/home"
cp "$here/jitrun" "$here/jitwarm" "$dir/bin/" || exit 1
[ ! -e .libs/libjitrun-programs.so ] || cp .libs/libjitrun-programs-*.so "$dir/bin/" || exit 1
LD_LIBRARY_PATH=$dir/bin
export LD_LIBRARY_PATH
cp "$model" "$dir/models/model.gguf"
PATH=$dir/bin:$PATH
export PATH

# RUN jitwarm
HOME=$dir/home jitwarm $warm > "$dir/out" 2> "$dir/err"
check "jitwarm $warm: $(cat "$dir/err")" [ $? = 0 ]
check "nothing on stdout" [ ! -s "$dir/out" ]
check "the pack is where the image takes it from" [ -s "$cache" ]
check "its size is said" grep -q \
	'kernels for avx2, avx2vnni, avx512, avx512vnni, avx512bf16, avx512amx; .* generated' "$dir/err"
check "nothing else was written" [ -z "$(ls -A "$dir/home")" ]

# the same file again: from the header alone, elsewhere, later, with another umask and environment
head -c 200000 "$dir/models/model.gguf" > "$dir/header.gguf"
(cd /; umask 077; env -i PATH="$PATH" TZ=Asia/Tokyo LC_ALL=C jitwarm "$dir/header.gguf" --target avx512vnni --target \
	avx2 --target avx512amx --target avx512bf16 --target avx512 --target avx2vnni --out "$dir/again.jkp" -q)
check "the pack is the same from the header alone" cmp -s "$cache" "$dir/again.jkp"
jitwarm verify "$cache" 2> "$dir/err"
check "verify: every code object is what is made now: $(cat "$dir/err")" [ $? = 0 ]

# ---- the image: only read, by somebody else
HOME=$dir/home jitrun "$dir/models/model.gguf" --no-cache --prompt "Once upon a time" -n 24 --temp 0 -q > "$dir/want"
chmod -R a+rX,a-w "$dir/models" "$dir/kernels" "$dir/home" "$dir/bin"
chmod 755 "$dir"
as_user() { "$@"; }
if [ "$(id -u)" = 0 ]; then
	if setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups "$dir/bin/jitrun" --version > /dev/null \
		2>&1; then
		as_user() { setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups "$@"; }
	elif chroot --userspec="$user" --groups= / "$dir/bin/jitrun" --version > /dev/null 2>&1; then
		as_user() { chroot --userspec="$user" --groups= / "$@"; }
	else
		echo "# skipped: running as another user"
	fi
fi
image() { as_user env -i PATH="$PATH" LD_LIBRARY_PATH="$dir/bin" HOME="$dir/home" JITRUN_CACHE="$cache" \
	"$@" > "$dir/got" 2> "$dir/err" < \
	/dev/null; }

image $entry --prompt "Once upon a time" -n 24 --temp 0 -q
check "the image runs: $(cat "$dir/err")" [ $? = 0 ]
check "and tells the same story" cmp -s "$dir/got" "$dir/want"
image $entry --prompt "Once upon a time" -n 24 --temp 0 --json -q --kv-type q8_0 --speculate 8
check "with other options too: $(cat "$dir/err")" [ $? = 0 ]
check "nothing is generated" grep -q '"kernels_generated":0,' "$dir/got"
check "all comes from the pack" grep -qE '"kernels_from_cache":[1-9]' "$dir/got"
check "nothing was written" [ -z "$(ls -A "$dir/home")" -a "$(ls "$dir/kernels")" = kernels.jkp ]
image jitrun "$dir/models/model.gguf" --prompt "Once upon a time" -n 24 --temp 0 --json -q
check "not sealed: the pack serves as well" grep -q '"kernels_generated":0,' "$dir/got"
image $entry --cache "$dir/kernels/none.jkp" --prompt x
check "a cache that is not there is an error" [ $? = 1 ]
check "which names it: $(cat "$dir/err")" grep -q 'none\.jkp' "$dir/err"

# ---- a directory as the layer
chmod u+w "$dir/kernels"
jitwarm "$dir/models/model.gguf" --out "$dir/kernels/layer" --batch 16 --kv-type f16 --activations auto 2> "$dir/err"
check "a directory is warmed: $(cat "$dir/err")" [ $? = 0 ]
jitwarm "$dir/models/model.gguf" --out "$dir/kernels/layer" --batch 16 --kv-type f16 --activations auto 2> "$dir/err"
check "a second time, nothing is generated: $(cat "$dir/err")" grep -q \
	'; 0 generated, [1-9][0-9]* already in the cache' "$dir/err"
chmod -R a+rX,a-w "$dir/kernels"
listing() { ls -lR --time-style=full-iso "$dir/kernels/layer" | sort; }
listing > "$dir/before"
image $entry --cache "$dir/kernels/layer" --batch 16 --prompt "Once upon a time" -n 24 --temp 0 -q
check "the image runs from a directory: $(cat "$dir/err")" [ $? = 0 ]
check "and tells the same story" cmp -s "$dir/got" "$dir/want"
listing > "$dir/after"
check "the directory is as it was" cmp -s "$dir/before" "$dir/after"
image $entry --cache "$dir/kernels/layer" --prompt x -q
check "what it lacks is refused" [ $? = 1 ]
check "by name, with the nearest: $(cat "$dir/err")" grep -qE \
	'kernel [a-z0-9_.]+ is not in the cache, and --sealed forbids generating it; in the nearest one there, .* is '\
'.*, not ' "$dir/err"
image jitwarm explain "$dir/models/model.gguf" --cache "$dir/kernels/layer"
check "explain says that something is missing" [ $? = 3 ]
check "what, and what the nearest is" grep -qE '^miss  [a-z0-9_.]+  nearest [a-z0-9_.]+: [a-zA-Z ]+ is .*, not ' \
	"$dir/got"
image jitwarm explain "$dir/models/model.gguf" --target avx2
check "explain finds all in the pack" [ $? = 0 ]

finish
