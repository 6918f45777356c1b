//! Links in what a model says and a tool finds: text for the client, never an address for attache.

use std::net::TcpListener;

use attache_testkit::binary::Home;
use serde_json::json;

const CANARY: &str = "canary-c04d77";

/// Links in every form that a reader of Markdown or HTML would follow.
fn links(address: &str) -> String {
    format!(
        "![x](http://{address}/a?{CANARY}) <img src=\"http://{address}/b?{CANARY}\"> [x]: http://{address}/c?{CANARY} \
         <link rel=\"prefetch\" href=\"http://{address}/d\"> http://{address}/e?{CANARY} \
         <iframe src=\"http://{address}/f\"></iframe> ![x](//{address}/g)"
    )
}

#[tokio::test]
async fn links_in_text_and_output_are_never_followed() {
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    sink.set_nonblocking(true).unwrap();
    let address = sink.local_addr().unwrap().to_string();
    let said = links(&address);
    let script = format!(
        "on *\n  reasoning {said}\n  text {said}\n  source {url} {said}\n  file \"image/png\" {url}\n  \
         call bash {bash}\n  call read {{\"path\":\"links.md\"}}\n  call todo {todo}\n  ---\n  text {said}\n",
        said = json!(said),
        url = json!(format!("http://{address}/s?{CANARY}")),
        bash = json!({"command": "cat links.md"}),
        todo = json!({"todos": [{"content": said, "status": "pending"}]}),
    );
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script);
    std::fs::write(home.workspace().join("links.md"), &said).unwrap();
    let agent = home.start();
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;
    agent.prompt(&session, &said).await.unwrap();
    let received = format!("{:?}", agent.client.received());
    let updates = agent.load(&session, &home.workspace()).await;
    agent.finish(&home).await;
    assert!(received.contains(CANARY) && !updates.is_empty(), "the links were told");
    for command in
        [vec!["sessions", "show", &session], vec!["sessions", "export", &session, "--format", "md"]]
    {
        let output = home.command().args(command).output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(sink.accept().is_err(), "somebody followed a link");
}
