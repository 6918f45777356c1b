"""Takes spans as a collector does and prints each as OpenTelemetry's own message types read it, one line of JSON.

Prints its address first and ends with its input. A request that is not OTLP in JSON is answered with 400, and the
reason is printed as {"invalid": …}.
"""

import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
ENUMS = {"kind", "code"}
LOCK = threading.Lock()


def say(line):
    with LOCK:
        print(json.dumps(line), flush=True)


def as_protobuf_has_it(value):
    """OTLP differs from protobuf's JSON in ids (hex, not base64), enums (numbers only) and keys (camel case only)."""
    if isinstance(value, list):
        return [as_protobuf_has_it(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, item in value.items():
        if "_" in key:
            raise ValueError(f"a field is named {key}")
        if key in IDS:
            raw = bytes.fromhex(item)
            if len(raw) != IDS[key] or not any(raw):
                raise ValueError(f"{key} is {item}")
            item = base64.b64encode(raw).decode()
        elif key in ENUMS and not isinstance(item, int):
            raise ValueError(f"{key} is {item!r}, not a number")
        elif key in ("intValue", "startTimeUnixNano", "endTimeUnixNano") and not isinstance(item, str):
            raise ValueError(f"{key} is {item!r}, not a text")
        out[key] = as_protobuf_has_it(item)
    return out


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind)


def attributes(pairs):
    found = {}
    for pair in pairs:
        if pair.key in found:
            raise ValueError(f"{pair.key} is there twice")
        found[pair.key] = plain(pair.value)
    return found


def spans(body):
    request = trace_service_pb2.ExportTraceServiceRequest()
    json_format.ParseDict(as_protobuf_has_it(json.loads(body)), request)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "resource": attributes(resource.resource.attributes),
                    "scope": scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "status": span.status.code,
                    "message": span.status.message,
                }


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/json":
                raise ValueError(f"{self.path} with {self.headers['Content-Type']}")
            for span in list(spans(body)):
                span["headers"] = {name.lower(): value for name, value in self.headers.items()}
                say(span)
            self.answer(200)
        except (ValueError, json_format.ParseError) as error:
            say({"invalid": str(error)})
            self.answer(400)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
