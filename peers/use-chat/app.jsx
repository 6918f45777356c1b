// A chat as React apps have it: the AI SDK's useChat over its DefaultChatTransport, nothing of it changed. What was said
// before a reload is kept by the page; an answer that was under way is resumed.

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";

const { api, token } = JSON.parse(document.getElementById("settings").textContent);
const id = new URLSearchParams(location.search).get("chat");
const headers = { Authorization: `Bearer ${token}` };
const kept = JSON.parse(localStorage.getItem(id) ?? "[]");

function Approval({ part, answer }) {
  const { id } = part.approval;
  return (
    <p className="approval">
      May it run? <button className="allow" onClick={() => answer({ id, approved: true })}>Allow</button>{" "}
      <button className="deny" onClick={() => answer({ id, approved: false, reason: "not today, it is late" })}>Deny</button>
    </p>
  );
}

function Part({ part, answer }) {
  if (part.type === "text") return <p className="text">{part.text}</p>;
  if (part.type === "reasoning") return <p className="reasoning">{part.text}</p>;
  if (part.type === "file") return <p className="file">{`${part.filename} (${part.mediaType})`}</p>;
  if (!part.type.startsWith("tool-")) return null;
  return (
    <div className="tool" data-name={part.type.slice(5)} data-state={part.state}>
      {part.state === "approval-requested" ? <Approval part={part} answer={answer} /> : null}
    </div>
  );
}

function Chat() {
  const [text, setText] = useState("");
  const files = useRef(null);
  const { messages, sendMessage, status, stop, error, addToolApprovalResponse } = useChat({
    id,
    messages: kept,
    resume: true,
    transport: new DefaultChatTransport({ api, headers }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onFinish: () => (document.body.dataset.read = "whole"),
  });
  useEffect(() => {
    const said = messages.at(-1)?.role === "user" || status === "ready" ? messages : messages.slice(0, -1);
    localStorage.setItem(id, JSON.stringify(said));
  }, [messages, status]);
  const send = (event) => {
    event.preventDefault();
    void sendMessage({ text, files: files.current.files.length > 0 ? files.current.files : undefined });
    setText("");
    files.current.value = "";
  };
  const end = async () => {
    await stop();
    await fetch(`${api}/${id}/stop`, { method: "POST", headers });
  };
  return (
    <main>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, index) => <Part key={index} part={part} answer={addToolApprovalResponse} />)}
        </section>
      ))}
      <p id="status">{status}</p>
      <p id="error">{error?.message}</p>
      <form onSubmit={send}>
        <input id="text" value={text} onChange={(event) => setText(event.target.value)} />
        <input id="files" type="file" multiple ref={files} />
        <button id="send">Send</button>
        <button id="stop" type="button" onClick={end}>Stop</button>
      </form>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
