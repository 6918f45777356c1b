#!/usr/bin/env python3
"""An MCP server over streamable HTTP for the tests. Prints its port. The first argument says how it behaves:

resumes     cuts the answer to a call off, and goes on where its client has got to
cuts        cuts it off, and knows nothing of it afterwards
moves       leads to another port
foreign     answers a call for others first, and twice
long        answers a call with one event of 100 MB
html        answers a call with a page
refuses     refuses a call with an error of the protocol
stalls      never answers a call
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = sys.argv[1]
SEEN = []


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def event(message, number=None):
    head = "" if number is None else "id: %d\n" % number
    return (head + "data: " + (json.dumps(message) if message else "") + "\n\n").encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def result(self, ident, result):
        body = json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}).encode()
        self.answer(200, "application/json", body, Mcp_Session_Id="s1")

    def do_DELETE(self):
        self.answer(200, "text/plain", b"")

    def do_GET(self):
        last = self.headers.get("Last-Event-ID")
        if MODE == "resumes" and last:
            SEEN.append(last)
            self.begin_events()
            if len(SEEN) == 1:
                self.wfile.write(event(None, 2))
                return
            self.wfile.write(event({"jsonrpc": "2.0", "id": CALL[0], "result": text("resumed at " + ",".join(SEEN))}, 3))
            return
        self.answer(405, "text/plain", b"")

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ident, method = message.get("id"), message["method"]
        if ident is None:
            return self.answer(202, "text/plain", b"")
        if method == "initialize":
            return self.result(ident, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                       "serverInfo": {"name": "test", "version": "1"}})
        if method == "tools/list":
            return self.result(ident, {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]})
        CALL[:] = [ident]
        if MODE == "moves":
            return self.answer(307, "text/plain", b"", Location="http://127.0.0.1:%d/stolen" % (PORT + 1))
        if MODE == "html":
            return self.answer(200, "text/html", b"<h1>log in</h1>" * 1_000_000)
        if MODE == "refuses":
            error = {"code": -32602, "message": "no such\u202e tool"}
            return self.answer(400, "application/json", json.dumps({"jsonrpc": "2.0", "error": error}).encode())
        if MODE == "stalls":
            self.rfile.read(1)
            return None
        self.begin_events()
        if MODE in ("resumes", "cuts"):
            self.wfile.write(event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}},
                                   1 if MODE == "resumes" else None))
        if MODE == "foreign":
            for other in [ident + 1, "x", None]:
                self.wfile.write(event({"jsonrpc": "2.0", "id": other, "result": text("for others")}))
            self.wfile.write(event({"jsonrpc": "2.0", "id": ident, "result": text("for us")}))
            self.wfile.write(event({"jsonrpc": "2.0", "id": ident, "result": text("again")}))
        if MODE == "long":
            self.wfile.write(event({"jsonrpc": "2.0", "id": ident, "result": text("x" * 100_000_000)}))
        return None


CALL = []
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
PORT = SERVER.server_address[1]
print(PORT, flush=True)
SERVER.serve_forever()
