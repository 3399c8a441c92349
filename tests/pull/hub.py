#!/usr/bin/env python3
"""A hub of one file, for tests of jitpull: hub.py FILE [CERT KEY] prints its port and answers on 127.0.0.1.

Whatever repository is asked for holds the file, which is sent from another address than the hub's, as the real one does.
With CERT and KEY it speaks HTTPS."""

import hashlib
import http.server
import json
import os
import ssl
import sys

path = sys.argv[1]
with open(path, "rb") as f:
    data = f.read()
name = os.path.basename(path)
digest = hashlib.sha256(data).hexdigest()
commit = hashlib.sha1(data).hexdigest()


class Hub(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for field, value in fields.items():
            self.send_header(field.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/api/models/"):
            listed = {"rfilename": name, "size": len(data), "lfs": {"sha256": digest, "size": len(data)}}
            self.answer(200, json.dumps({"sha": commit, "siblings": [listed]}).encode())
        elif self.path.startswith("/bytes/"):
            given = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0]
            at = int(given)
            span = f"bytes {at}-{len(data) - 1}/{len(data)}"
            self.answer(206 if at else 200, data[at:], ETag='"bytes"', **({"Content_Range": span} if at else {}))
        elif self.path.endswith("/" + name):
            self.answer(302, Location=f"/bytes/{name}", X_Repo_Commit=commit, X_Linked_Size=str(len(data)),
                        X_Linked_ETag=f'"{digest}"')
        else:
            self.answer(404, X_Error_Code="EntryNotFound")

    do_HEAD = do_GET


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
