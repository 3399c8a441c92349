# tests/support/serve.sh - servers of a test's own; a test sources it behind prelude.sh.
#
# serve NAME ARGUMENTS...: ./jitserve with these arguments, in the background. When it is ready, its process is in
# $server, its address in $url, and its port in $dir/NAME.port; what it says is in $dir/NAME.err. Status 1: it has not
# become ready, and has ended. All that still run are ended with the test.
servers=
serve() {
	serve_name=$1; shift
	rm -f "$dir/$serve_name.err"
	./jitserve "$@" 2>"$dir/$serve_name.err" &
	server=$!
	servers="$servers $server"
	serve_tries=0
	until grep -q 'ready on' "$dir/$serve_name.err" 2>/dev/null; do
		serve_tries=$((serve_tries + 1))
		if ! kill -0 $server 2>/dev/null || [ $serve_tries -ge 600 ]; then
			kill -9 $server 2>/dev/null
			return 1
		fi
		sleep 0.1
	done
	url=$(sed -n 's/.*ready on \(http[^ ]*\).*/\1/p' "$dir/$serve_name.err")
	sed -n 's/.*ready on .*:\([0-9]*\)$/\1/p' "$dir/$serve_name.err" >"$dir/$serve_name.port"
}
# must_serve NAME ARGUMENTS...: the same, or the test ends with what was said
must_serve() { serve "$@" || { cat "$dir/$serve_name.err"; exit 1; }; }
trap 'kill -9 $servers 2>/dev/null; chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
