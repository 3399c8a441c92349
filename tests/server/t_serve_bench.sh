#!/bin/sh
# tests/server/t_serve_bench.sh - bench/serve measures two servers in turns and writes what it says it writes.
#
# In the place of llama.cpp's server stands jitserve once more, which is told what that server's options mean.
. "${srcdir:-.}/tests/support/prelude.sh"
run() { ./bench/serve "$@" >"$dir/out" 2>"$dir/err"; status=$?; }
cat >"$dir/other" <<'EOF'
#!/bin/sh
[ "$1 $3 $5 $7" = "--model --port --parallel --ctx-size" ] || exit 9
exec ./jitserve "$2" --port "$4" --parallel "$6" --context "$(($8 / $6))" --no-cache
EOF
chmod +x "$dir/other"
small="-r 1 --requests 1 --words 5 --tokens 4 --context 64"
is 0 "$model" $small --clients 1,3 --beside "$dir/other" --server-arguments "--no-cache --no-replay" --csv "$dir/csv"
check "a row for each number of clients and each server: $(cat "$dir/out")" \
	[ "$(grep -cE '^\| [13] \| (jitserve|other) \|' "$dir/out")" = 4 ]
check "CSV has the same, and numbers: $(cat "$dir/csv")" \
	[ "$(grep -cE '^[13],(jitserve|other),1(,[0-9]+\.[0-9]+){7}$' "$dir/csv")" = 4 ]
check "no rate is 0" [ "$(awk -F, 'NR > 1 && $4 <= 0' "$dir/csv" | wc -l)" = 0 ]
# A server whose answers have fewer events than tokens: four in 0.3 s, which its usage alone tells.
if command -v python3 >/dev/null; then
	cat >"$dir/few.py" <<'EOF'
import http.server, sys, time

class Few(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *what):
        pass

    def begin(self):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def do_GET(self):
        self.begin()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.begin()
        text = sys.argv[1]
        self.wfile.write(b'data: {"choices":[{"text":"%s"}]}\n\n' % text.encode())
        self.wfile.flush()
        time.sleep(0.3)
        self.wfile.write(b'data: {"choices":[{"text":"%s"}],"usage":{"completion_tokens":4}}\n\n' % text.encode())

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Few).serve_forever()
EOF
	for text in a ""; do
		printf '#!/bin/sh\nexec python3 "%s" "%s" "$@"\n' "$dir/few.py" "$text" >"$dir/few"
		chmod +x "$dir/few"
		is 0 "$model" $small --clients 1 --beside "$dir/few" --server-arguments --no-cache --csv "$dir/csv"
		check "a token each 0.1 s, of events with \"$text\": $(cat "$dir/csv")" \
			[ "$(awk -F, '$2 == "few" && $9 > 50 && $9 < 250' "$dir/csv" | wc -l)" = 1 ]
	done
else
	echo "# events that are not tokens: not tried, there is no python3"
fi
if command -v gnuplot >/dev/null; then
	is 0 "$model" $small --clients 1,2 --server-arguments --no-cache --png "$dir/png"
	check "a picture" [ "$(head -c 4 "$dir/png" | tail -c 3)" = PNG ]
else
	echo "# not drawn: there is no gnuplot"
fi
refused 'which model' 2 $small
refused '--clients 1,x: expected' 2 "$model" --clients 1,x
refused 'ended with status' 1 "$model" $small --server-arguments --no-such-option
refused 'ended with status 127' 1 "$model" $small --server "$dir/nothing"
# its context ends before
refused 'another length' 1 "$model" -r 1 --requests 1 --words 5 --tokens 70 --context 64 --clients 1 \
	--server-arguments --no-cache
finish
