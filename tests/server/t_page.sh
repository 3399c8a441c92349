#!/bin/sh
# tests/server/t_page.sh - the web page at / in a headless Chromium (clients/page.mjs), and what of it needs no browser.
. "${srcdir:-.}/tests/support/prelude.sh"
. "${srcdir:-.}/tests/support/serve.sh"

size=$(wc -c <"$top/server/control/chat.html")
check "the page has $size bytes, at most 100000 are expected" [ "$size" -le 100000 ]
has() { grep -cE "$1" "$top/server/control/chat.html"; }
check "the page asks for nothing elsewhere" [ "$(has '(src|href)="?(http|//)|@import|url\(')" = 0 ]
markup='innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\('
check "the page makes no markup out of text" [ "$(has "$markup")" = 0 ]

browser=
for program in chromium chromium-browser google-chrome; do
	[ -n "$browser" ] || browser=$(command -v $program)
done
if [ -z "$browser" ] || ! command -v node >/dev/null; then
	[ "$failed" = 0 ] || finish || exit 1
	echo "# skipped: there is no node, or no chromium"
	exit 77
fi
hostile='<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
cp "$model" "$dir/second.gguf"
echo the-key >"$dir/keys"
common="--port 0 --no-cache --no-replay --quiet"
must_serve quick $common "$model" "$dir/second.gguf" --alias "$hostile" --alias other --kv-memory 64
quick=$url
must_serve slow $common "$model" --device ref --threads 1
slow=$url
must_serve guarded $common "$model" --api-key-file "$dir/keys"
guarded=$url
set -- "$browser" "$dir" "$quick" "$slow" "$guarded" the-key
timeout 300 node "$top/tests/server/clients/page.mjs" "$@" >"$dir/said" 2>&1
status=$?
cat "$dir/said"
[ $status != 77 ] || exit 77
check "the page in $browser" [ $status = 0 ]
for server in $servers; do
	kill "$server"
	wait "$server"
	check "the server ends as asked" [ $? = 0 ]
done
servers=
serve none "$model" --no-page
if command -v curl >/dev/null; then
	check "--no-page: there is none" [ "$(curl -s -o /dev/null -w '%{http_code}' \
		-H 'Accept: text/html' "$url/")" = 404 ]
fi
finish
