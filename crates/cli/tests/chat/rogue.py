# An agent that speaks the protocol as badly as its argument says.
import json
import os
import subprocess
import sys
import time

fault = sys.argv[1]


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=False)


def update(**fields):
    send(method="session/update", params={"sessionId": "s", "update": fields})


def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def die():
    sys.stdout.flush()
    print("boom", file=sys.stderr, flush=True)
    os._exit(3)


if fault == "dies":
    die()
if fault == "garbage":
    for number in range(5000):
        print("Usage: this is not an agent", flush=True)
    time.sleep(600)
if fault == "floods-first":
    while True:
        say("x")
for line in sys.stdin:
    message = json.loads(line)
    method, request = message.get("method"), message.get("id")
    if method == "initialize":
        if fault == "nonsense":
            send(id=request, result={"protocolVersion": {}})
        elif fault == "refuses":
            send(id=request, error={"code": -32000, "message": "I have no licence"})
        else:
            version = int(fault.split("-")[1]) if fault.startswith("version-") else 1
            send(id=request, result={"protocolVersion": version, "agentCapabilities": {}})
    elif method == "session/new":
        if fault == "stays":
            subprocess.Popen(["sleep", "600"])
        send(id=request, result={"sessionId": "s"})
    elif method == "session/prompt":
        if fault == "dies-later":
            die()
        if fault == "floods":
            for number in range(20_000):
                say("x")
                update(sessionUpdate="of_the_future", number=number)
                print("a line that is no message")
                update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm"})
        else:
            say("x")
        send(id=request, result={"stopReason": "end_turn"})
    sys.stdout.flush()
if fault == "stays":
    time.sleep(600)
