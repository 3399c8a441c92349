/* tests/server/hostile.c - requests that no honest client sends, and what each must be answered with. */
#include "tests/server/hostile.h"

#define HEAD "POST /v1/completions HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"

const struct hostile hostile_requests[] = {
#define ROW(name, text, status, or_status) \
	{ \
		name, text, sizeof text - 1, status, or_status \
	}
	ROW("two ways to give a length", HEAD HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	    400, 400),
	ROW("the same in the other order", HEAD HOST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
	    400, 400),
	ROW("two lengths", HEAD HOST "Content-Length: 2\r\nContent-Length: 7\r\n\r\n{}", 400, 400),
	ROW("two equal lengths", HEAD HOST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, 400),
	ROW("two lengths in one field", HEAD HOST "Content-Length: 2, 2\r\n\r\n{}", 400, 400),
	ROW("an unknown coding", HEAD HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, 400),
	ROW("two codings", HEAD HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, 400),
	ROW("a coding twice", HEAD HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	    400, 400),
	ROW("a coding in HTTP/1.0",
	    "POST /v1/completions HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 400),
	ROW("length +2", HEAD HOST "Content-Length: +2\r\n\r\n{}", 400, 400),
	ROW("length 2abc", HEAD HOST "Content-Length: 2abc\r\n\r\n{}", 400, 400),
	ROW("length -1", HEAD HOST "Content-Length: -1\r\n\r\n{}", 400, 400),
	ROW("length 0x2", HEAD HOST "Content-Length: 0x2\r\n\r\n{}", 400, 400),
	ROW("no length at all", HEAD HOST "Content-Length:\r\n\r\n{}", 400, 400),
	ROW("length 2^64 + 2", HEAD HOST "Content-Length: 18446744073709551618\r\n\r\n{}", 400, 413),
	ROW("length 2^63 - 1", HEAD HOST "Content-Length: 9223372036854775807\r\n\r\n{}", 413, 413),
	ROW("a chunk of 2^64",
	    "POST /v1/chat/completions HTTP/1.1\r\n" HOST
	    "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n{}\r\n0\r\n\r\n",
	    400, 413),
	ROW("a space before the colon", HEAD HOST "Content-Length : 2\r\n\r\n{}", 400, 400),
	ROW("a name with a space", HEAD HOST "X Y: 2\r\n\r\n", 400, 400),
	ROW("no Host", "GET /health HTTP/1.1\r\n\r\n", 400, 400),
	ROW("two Hosts", "GET /health HTTP/1.1\r\n" HOST HOST "\r\n", 400, 400),
	/* The library ends the value there, and so does whoever asks for it. */
	ROW("NUL in a value", "GET /health HTTP/1.1\r\n" HOST "X-Y: a\0b\r\n\r\n", 400, 200),
	ROW("an escape in a value", "GET /health HTTP/1.1\r\n" HOST "X-Y: a\033b\r\n\r\n", 400, 400),
	ROW("a line that goes on", "GET /health HTTP/1.1\r\n" HOST "X-Y: a\r\n b\r\n\r\n", 400, 200),
	ROW("HTTP/2.0", "GET /health HTTP/2.0\r\n" HOST "\r\n", 505, 400),
	ROW("no version", "GET /health\r\n" HOST "\r\n", 400, 505),
	ROW("another name", "GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, 403),
	ROW("another name with our port", "GET /health HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n", 403, 403),
	ROW("a name that begins like ours", "GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 403, 403),
	ROW("a page of others", "GET /health HTTP/1.1\r\n" HOST "Origin: https://evil.example\r\n\r\n", 403, 403),
	ROW("a page without a name", "GET /health HTTP/1.1\r\n" HOST "Origin: null\r\n\r\n", 403, 403),
	ROW("a page of ours", "GET /health HTTP/1.1\r\n" HOST "Origin: http://localhost\r\n\r\n", 200, 200),
	ROW("a preflight", "OPTIONS /v1/models HTTP/1.1\r\n" HOST "Origin: http://localhost\r\n\r\n", 405, 405),
	ROW("our name as a number", "GET /health HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 200, 200),
	ROW("our name of version 6", "GET /health HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", 200, 200),
	ROW("bare line feeds", "GET /health HTTP/1.1\nHost: localhost\n\n", 200, 400),
	ROW("nothing there", "GET /nothing HTTP/1.1\r\n" HOST "\r\n", 404, 404),
	ROW("another method", "DELETE /health HTTP/1.1\r\n" HOST "\r\n", 405, 405),
	ROW("a long body", HEAD HOST "Content-Length: 1048577\r\n\r\n", 413, 413),
	{ 0 },
#undef ROW
};
