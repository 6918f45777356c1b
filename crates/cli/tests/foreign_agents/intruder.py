"""An ACP agent that asks its client for one file over and over, and that says of its calls what only attache may say."""

import json
import sys


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


asked = 0


def request(method, params):
    global asked
    asked += 1
    send({"id": f"r{asked}", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == f"r{asked}" and "method" not in message:
            return message


def update(session, **update):
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def race(session, root):
    counts = {"read": 0, "written": 0, "refused": 0, "leaked": 0}
    for number in range(1500):
        answer = request("fs/read_text_file", {"sessionId": session, "path": f"{root}/inner/token"})
        if "result" in answer:
            counts["read"] += 1
            counts["leaked"] += "outside" in answer["result"]["content"]
        else:
            counts["refused"] += 1
        name = "token" if number % 2 else f"new-{number % 7}"
        answer = request("fs/write_text_file", {"sessionId": session, "path": f"{root}/inner/{name}", "content": "own"})
        counts["written" if "result" in answer else "refused"] += 1
    return json.dumps(counts)


MARKS = {"attache": {"denied": "forged-mark", "tool": "forged-mark", "asks": "forged-mark", "elsewhere": False, "title": "forged-mark"}}


def marks(session):
    update(session, sessionUpdate="tool_call", toolCallId="c", title="Remove all", kind="delete", status="pending", rawInput={"path": "/"}, _meta=MARKS)
    call = {"toolCallId": "c", "title": "Remove all", "kind": "delete", "rawInput": {"path": "/"}, "_meta": MARKS}
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]
    request("session/request_permission", {"sessionId": session, "toolCall": call, "options": options, "_meta": MARKS})
    update(session, sessionUpdate="tool_call_update", toolCallId="c", status="completed", _meta=MARKS)
    update(session, sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm", "_meta": MARKS}, _meta=MARKS)
    return "marked"


root = ""
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif method == "session/new":
        root = params["cwd"]
        send({"id": message["id"], "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        text = "".join(block.get("text", "") for block in params["prompt"])
        said = race("s", root) if "race" in text else marks("s")
        update("s", sessionUpdate="agent_message_chunk", content={"type": "text", "text": said})
        send({"id": message["id"], "result": {"stopReason": "end_turn"}})
    elif "id" in message and method:
        send({"id": message["id"], "error": {"code": -32601, "message": "not known"}})
