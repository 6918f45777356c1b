#!/usr/bin/env python3
"""A model for other people's agents: asks for one call of a tool, then says what came of it. Speaks the responses
and the chat completions of OpenAI and the API of Gemini. Prints its port; ends with its input."""

import http.server
import json
import sys
import threading

SAID = "It said hello."
SHELLS = {
    "exec_command": {"cmd": "echo hello"},
    "shell": {"command": "echo hello"},
    "bash": {"command": "echo hello", "description": "Says hello"},
}
CALL = {"index": 0, "id": "c1", "type": "function"}


def events(*all):
    return "".join("data: %s\n\n" % (one if isinstance(one, str) else json.dumps(one)) for one in all)


def responses(asked):
    tools = [tool.get("name") for tool in asked.get("tools", [])]
    is_done = any(item.get("type") == "function_call_output" for item in asked["input"])
    name = next((name for name in tools if name in SHELLS), None)
    if name and not is_done:
        item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": name,
                "arguments": json.dumps(SHELLS[name])}
    else:
        item = {"type": "message", "id": "m1", "role": "assistant",
                "content": [{"type": "output_text", "text": SAID}]}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return events({"type": "response.created", "response": {"id": "r1"}},
                  {"type": "response.output_item.done", "item": item},
                  {"type": "response.completed", "response": {"id": "r1", "output": [], "usage": usage}})


def completions(asked):
    tools = [tool["function"]["name"] for tool in asked.get("tools", [])]
    is_done = any(message["role"] == "tool" for message in asked["messages"])
    name = next((name for name in tools if name in SHELLS), None)
    if name and not is_done:
        call = dict(CALL, function={"name": name, "arguments": json.dumps(SHELLS[name])})
        delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    else:
        delta, reason = {"role": "assistant", "content": SAID}, "stop"

    def chunk(choices, **more):
        return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": asked["model"],
                "choices": choices, **more}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return events(chunk([{"index": 0, "delta": delta, "finish_reason": None}]),
                  chunk([{"index": 0, "delta": {}, "finish_reason": reason}]), chunk([], usage=usage), "[DONE]")


def gemini(asked):
    is_done = any("functionResponse" in part for content in asked["contents"] for part in content["parts"])
    call = {"functionCall": {"name": "list_directory", "args": {"dir_path": "."}}}
    part = {"text": SAID} if is_done or not asked.get("tools") else call
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return events({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                   "usageMetadata": usage})


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer("application/json", '{"object": "list", "data": [{"id": "m1", "object": "model"}]}')

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if "responses" in self.path:
            self.answer("text/event-stream", responses(asked))
        elif "completions" in self.path:
            self.answer("text/event-stream", completions(asked))
        elif "streamGenerateContent" in self.path:
            self.answer("text/event-stream", gemini(asked))
        else:
            self.answer("application/json", "{}")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
