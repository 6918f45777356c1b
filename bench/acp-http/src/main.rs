//! The smallest agent behind the official `agent-client-protocol-http` server: answers each prompt with as many
//! updates as its first argument says, each with the text of its second, in one piece: it has all of them at
//! once. Prints where it listens. Compared with by `attache-bench`.

use std::error::Error;
use std::io::Write;

use agent_client_protocol::{Agent, Client, ConnectTo, Responder, UntypedMessage, V1};
use agent_client_protocol_http::AcpHttpServer;
use serde_json::{Value, json};
use tokio::net::TcpListener;

fn agent(count: u64, text: String) -> impl ConnectTo<Client> {
    Agent.v1().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value, V1>, client| match request.method() {
            "initialize" => responder.respond(json!({ "protocolVersion": 1, "agentCapabilities": {} })),
            "session/new" => responder.respond(json!({ "sessionId": "bench" })),
            "session/prompt" => {
                for _ in 0..count {
                    let content = json!({ "type": "text", "text": text });
                    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
                    let params = json!({ "sessionId": "bench", "update": update });
                    client.send_notification(UntypedMessage::new("session/update", params)?)?;
                }
                responder.respond(json!({ "stopReason": "end_turn" }))
            }
            method => {
                responder.respond_with_error(agent_client_protocol::Error::method_not_found().data(method))
            }
        },
        agent_client_protocol::on_receive_request!(),
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    // As many threads as the product has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut words = std::env::args().skip(1);
        let count: u64 = words.next().ok_or("COUNT is missing")?.parse()?;
        let text = words.next().ok_or("TEXT is missing")?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
        let router = AcpHttpServer::new(move || agent(count, text.clone())).into_router();
        axum::serve(listener, router).await?;
        Ok(())
    })
}
