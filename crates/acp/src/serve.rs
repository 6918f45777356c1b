//! One connection of an editor: dispatches requests to the hub, forwards journal entries, answers prompts behind them.
// DESIGN NOTE from the lead for whoever writes this file (remove when done):
//  pub struct Host { pub hub: Hub, pub agent_info version, pub thoughts: Thoughts, pub directories: Arc<dyn Directories> /* fn exists(&Path)->bool: this crate touches no files */,
//                    pub auth: AuthState or similar value: Option<String> hint for -32000 when no model is configured,
//                    pub export: Arc<dyn Fn..> (see below) }
//  pub fn serve(reader, writer, options: attache_rpc::Options, host: Host) -> Serving { async fn finished(); peer }   (starts the Peer with a Handler)
//  - Handler (sync, never waits): parse with from_wire, look the session up in the connection's own map (Mutex<HashMap<SessionId, Open>>; an unknown id => -32002 at once with data.sessionId),
//    call SessionHandle::prompt/cancel synchronously so that order is kept, spawn a task for everything that awaits.
//  - Per attached session one forwarder task owns the Attachment: loop { select: live.next() -> write_updates into one reused Vec<u8> -> peer.send_lines; prompt outcomes arrive through an mpsc: hold each until
//    live.cursor() >= outcome.after_index, then responder.ok (so the answer is behind all its updates in the same queue) }. TurnEnd -> stop_reason, Failed{Auth} -> -32000, Failed{..} -> -32603 with the message.
//  - user entries (role User) whose message_id is one of this connection's own pending prompts are not echoed (Ticket.accepted gives the id before any entry of it is announced: register it in the forwarder BEFORE forwarding).
//  - session/new: create, attach(Now), respond, then start forwarding, seat.ready(). session/load: attach(Beginning), send replay pages, then live entries below attachment.head, respond, then go on, seat.ready().
//    session/resume: attach(LiveRun) only if not attached already on this connection (then just respond). load on an attached session: replay again but keep one forwarder (detach the old one first, pending prompts move over).
//  - Client port: ConnectionClient { peer, session } implements attache_core::ports::Client::ask via peer.request("session/request_permission", .., None): outcome selected -> kind by optionId; unknown optionId or error answer -> RejectOnce;
//    cancelled -> Cancelled; RequestError::Closed -> Gone. Dropping the future sends $/cancel_request (rpc does it).
//  - $/cancel_request on session/prompt: responder.cancelled() fires -> handle.cancel_prompt(id); it is answered by its own outcome (cancelled). On connection close the token fires too: must NOT cancel the run then (peer.is_closed()).
//  - requests before initialize and a second initialize: -32600 with a clear message. Unknown methods -32601; unknown notifications ignored.
//  - available_commands_update after session/new: nothing to advertise yet => send nothing.
//  - authenticate/logout: credentials aren't managed by this version: authMethods empty, auth.logout not advertised; authenticate with any methodId -> -32602 naming that there is no such method; logout -> {} (nothing to forget) or -32601? choose and document.
//  - `_attache/session/status|export`, `_attache/queue/list|cancel|edit`; rewind/unrewind/compact are not there yet => -32601.
//  - closed(): detach everything, the host (cli) calls hub.shutdown() afterwards for stdio.
//  - session/close: handle.close() then forget; a later prompt => -32002. session/delete: hub.delete.
//  export: `export {format}` needs text from rows; the cli has the same need (`attache sessions export`): put the exporters (jsonl, json, md, csv) into a module of crate attache-core: `core/src/export.rs` (pure, streaming over Store pages) — the lead writes it:
//  pub async fn export(store: &dyn Store, session: &SessionId, format: Format, out: &mut (dyn Write+Send)) -> Result<(), ExportError>.
