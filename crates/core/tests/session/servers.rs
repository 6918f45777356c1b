//! Servers of a session: awaited by the first prompt for a moment, their tools appended, asked about, searched
//! for, and let go of with the session.

use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::hub::SessionPlace;
use attache_core::part::ToolState;
use attache_core::ports::client::Answer;
use attache_core::ports::mcp::{
    ArgumentNeed, HiddenText, OAuthSettings, PromptArgument, ServerDeadlines, ServerEntry, ServerOrigin,
    ServerPrompt, ServerRights, ServerSampling, ServerTransport,
};
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::servers::FakeServers;
use tokio::time::Instant;

use crate::world::*;

const CALL: &str = "on *\n call fake_go {}\n ---\n text \"on\"";

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

/// The names of the tools in each request.
fn offered(world: &World) -> Vec<Vec<String>> {
    let names = |request: &attache_core::ports::ModelRequest| {
        request
            .tools
            .iter()
            .map(|spec| spec.id.to_string())
            .filter(|name| name.starts_with("fake_") || name == "tool_search")
            .collect()
    };
    world.model.requests().iter().map(names).collect()
}

fn entry(name: &str) -> ServerEntry {
    let environment = vec![("KEY".to_owned(), HiddenText::new("canary"))];
    ServerEntry {
        name: name.to_owned(),
        origin: ServerOrigin::Client,
        transport: ServerTransport::Stdio {
            command: "x".to_owned(),
            arguments: Vec::new(),
            environment,
            directory: None,
        },
        rights: ServerRights::USUAL,
        deadlines: ServerDeadlines::default(),
        sampling: ServerSampling::Refused,
        oauth: OAuthSettings::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_prompt_waits_two_seconds_and_no_other_does() {
    let servers = FakeServers::new(&["go"]);
    servers.set_ready(false);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (_process, session) = world.session().await;
    let began = Instant::now();
    assert_eq!(say(&session, "one").await, finished());
    assert!((2_000..2_500).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    let began = Instant::now();
    assert_eq!(say(&session, "two").await, finished());
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    servers.set_ready(true);
    assert_eq!(say(&session, "three").await, finished());
    assert_eq!(offered(&world), [vec![], vec![], vec!["fake_go".to_owned()]]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_in_time_is_there_at_once() {
    let servers = FakeServers::new(&["go"]);
    servers.set_ready(false);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (_process, session) = world.session().await;
    let began = Instant::now();
    let ticket = session.prompt(prompt("one"));
    tokio::time::sleep(Duration::from_millis(700)).await;
    servers.set_ready(true);
    assert_eq!(ticket.outcome.await.unwrap().unwrap().end, finished());
    assert!(began.elapsed() < Duration::from_millis(1_200), "{:?}", began.elapsed());
    assert_eq!(offered(&world), [["fake_go"]]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_for_servers_can_be_cancelled() {
    let servers = FakeServers::new(&["go"]);
    servers.set_ready(false);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (_process, session) = world.session().await;
    let began = Instant::now();
    let ticket = session.prompt(prompt("one"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    session.cancel();
    assert_eq!(ticket.outcome.await.unwrap().unwrap().end, TurnEnd::Aborted);
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    servers.set_ready(true);
    assert_eq!(say(&session, "two").await, finished());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_always_is_about_the_tool_as_it_was() {
    let servers = FakeServers::new(&["go"]);
    let world = World::new(CALL).with_servers(servers.clone());
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::AllowAlways, Answer::RejectOnce]);
    let (shown, reading) = read(join(&session, client.clone()).await);
    for _ in 0..2 {
        assert_eq!(say(&session, "go").await, finished());
    }
    assert_eq!(client.asked().len(), 1, "allowed for always");
    servers.change(&["go"], 1);
    assert_eq!(say(&session, "go").await, finished());
    assert_eq!(client.asked().len(), 2, "it is another tool now");
    let last = world.answers(session.id()).pop().unwrap();
    assert_eq!(tools_of(&last)[0].state, ToolState::OutputDenied);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let told = format!("{:?}", shown.lock().unwrap());
    let why = "mcp:fake:go: its description is another and its arguments are others (new: 1; gone: 0)";
    assert!(told.contains(why), "{told}");
    reading.abort();
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changed_while_nobody_looked_is_asked_about_again() {
    for (identity, asked) in [(0, 1), (7, 2)] {
        let servers = FakeServers::new(&["go"]);
        let world = World::new(CALL).with_servers(servers.clone());
        let (process, session) = world.session().await;
        let client = answering(&[Answer::AllowAlways, Answer::AllowOnce]);
        let attachment = join(&session, client.clone()).await;
        assert_eq!(say(&session, "go").await, finished());
        let id = session.id().clone();
        drop(attachment);
        process.kill();
        servers.change(&["go"], identity);
        let process = world.process();
        let session = process.hub.open(&id).await.unwrap();
        let _attachment = join(&session, client.clone()).await;
        assert_eq!(say(&session, "go").await, finished());
        assert_eq!(client.asked().len(), asked, "{identity}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_tools_are_searched_for_and_what_was_found_stays() {
    let names: Vec<String> = (0..30).map(|number| format!("thing{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let servers = FakeServers::new(&names);
    let script =
        "on \"find\"\n call tool_search {\"query\":\"thing7\"}\n ---\n text \"found\"\non *\n text \"on\"";
    let world = World::new(script).with_servers(servers.clone());
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "find").await, finished());
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "on").await, finished());
    let found = vec!["tool_search".to_owned(), "fake_thing7".to_owned()];
    assert_eq!(offered(&world), [vec!["tool_search".to_owned()], found.clone(), found]);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_asks_for_is_opened_and_changed_by_the_next_opening() {
    let servers = FakeServers::new(&["go"]);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "one").await, finished());
    let place = |name: &str| SessionPlace { additional: Vec::new(), servers: vec![entry(name)] };
    session.work_in(place("files")).await.unwrap();
    session.work_in(place("files")).await.unwrap();
    assert_eq!(say(&session, "two").await, finished());
    let opened = servers.opened();
    assert_eq!(opened.len(), 2, "the same again changes nothing");
    assert_eq!(opened[1].of_client[0].name, "files");
    assert!(!format!("{opened:?}").contains("canary"), "values are never printed");
    session.close().await.unwrap();
    assert_eq!(servers.closed(), 2);
    drop(process);
}

#[tokio::test(start_paused = true)]
async fn mcp_says_how_they_are() {
    let servers = FakeServers::new(&["go"]);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (_process, session) = world.session().await;
    say(&session, "/mcp").await;
    assert_eq!(text_of(&world.answers(session.id())[0]), "- `fake` (a fake): ready; tools: `fake_go`");
}

fn server_prompt(command: &str, arguments: &[(&str, ArgumentNeed)]) -> ServerPrompt {
    let argument =
        |(name, need): &(&str, ArgumentNeed)| PromptArgument { name: (*name).to_owned(), need: *need };
    let arguments = arguments.iter().map(argument).collect();
    ServerPrompt { command: command.into(), description: "a prompt".into(), arguments }
}

#[tokio::test(start_paused = true)]
async fn the_first_prompt_may_be_one_of_a_server_that_still_connects() {
    let servers = FakeServers::new(&[]);
    servers.set_ready(false);
    servers.offer_prompts(&[server_prompt("fake:greet", &[("who", ArgumentNeed::Required)])]);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("/fake:greet Ada"));
    tokio::time::sleep(Duration::from_millis(700)).await;
    servers.set_ready(true);
    assert_eq!(ticket.outcome.await.unwrap().unwrap().end, finished());
    let sent = format!("{:?}", world.model.requests()[0].passages.last());
    assert!(sent.contains("fake:greet says who=Ada"), "{sent}");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_its_server_never_writes_can_be_cancelled() {
    let servers = FakeServers::new(&[]);
    servers.offer_prompts(&[server_prompt("fake:log", &[("slow", ArgumentNeed::Required)])]);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("/fake:log x"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    session.cancel();
    assert_eq!(ticket.outcome.await.unwrap().unwrap().end, TurnEnd::Aborted);
    assert_eq!(say(&session, "two").await, finished());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn news_of_resources_go_to_the_model_with_the_next_message_once() {
    let servers = FakeServers::new(&[]);
    let world = World::new("on *\n text \"on\"").with_servers(servers.clone());
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "one").await, finished());
    servers.tell_resource("<note>\nchanged: a://1\n</note>");
    assert_eq!(say(&session, "two").await, finished());
    assert_eq!(say(&session, "three").await, finished());
    let told = |request: &attache_core::ports::ModelRequest| {
        format!("{:?}", request.passages.last()).matches("changed: a://1").count()
    };
    assert_eq!(world.model.requests().iter().map(told).collect::<Vec<_>>(), [0, 1, 0]);
}
