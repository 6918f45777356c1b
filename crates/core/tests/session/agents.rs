//! Agents of files: which a session has, when it sees that they changed, and what its prompts say of them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use attache_core::agents::{Agents, FoundAgent, ManifestDialect};
use attache_core::hub::AttachFrom;
use attache_core::part::{Role, ToolState};
use attache_core::ports::BoxFuture;
use attache_core::ports::client::Answer;
use attache_core::ports::projects::{ProjectSettings, Projects};
use attache_core::turn::TurnEnd;
use serde_json::Value;

use crate::world::*;

/// Files that can be changed under the sessions.
#[derive(Debug, Default)]
struct Files(Mutex<Vec<FoundAgent>>);

impl Files {
    fn with(name: &str, text: &str) -> Arc<Self> {
        let files = Arc::new(Self::default());
        files.put(name, text);
        files
    }

    fn put(&self, name: &str, text: &str) {
        let path = format!("/agents/{name}.md").into();
        let file = FoundAgent { path, text: text.to_owned(), dialect: ManifestDialect::Own };
        let mut files = self.0.lock().unwrap();
        files.retain(|known| known.path != file.path);
        files.push(file);
    }
}

impl Projects for Files {
    fn settings(&self, _root: &Path) -> BoxFuture<'static, ProjectSettings> {
        let loaded = Agents::builtin().with_files(&self.0.lock().unwrap(), &|_, _| Err(String::new()));
        let settings = ProjectSettings { agents: Some(loaded.agents), ..ProjectSettings::default() };
        Box::pin(async move { settings })
    }
}

const SCRIPT: &str = "on *\n call look {\"path\":\"a\"}\n ---\n text \"fine\"";

fn manifest(prompt: &str) -> String {
    format!("---\nmode: primary\ndescription: Reviews.\ntools: [look]\n---\n{prompt}\n")
}

fn last_system(world: &World) -> String {
    world.model.requests().last().unwrap().system.to_string()
}

/// What each prompt of a session says of its agent.
fn agents_of_prompts(world: &World, session: &attache_core::ids::SessionId) -> Vec<Option<String>> {
    let disk = world.disk.lock().unwrap();
    let mut rows: Vec<_> =
        disk.messages.values().filter(|row| row.session_id == *session && row.role == Role::User).collect();
    rows.sort_by_key(|row| row.seq);
    let agent = |row: &&attache_core::ports::store::MessageRow| {
        row.metadata.as_map().get("agent").and_then(Value::as_str).map(str::to_owned)
    };
    rows.iter().map(agent).collect()
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_a_file_answers_with_its_prompt_and_its_tools() {
    let world = World::new(SCRIPT).with_projects(Files::with("reviewer", &manifest("Review it.")));
    let (_process, session) = world.session().await;
    let chosen = session.set_mode("reviewer".into()).await.unwrap();
    assert_eq!(chosen.modes.iter().map(|mode| &*mode.id).collect::<Vec<_>>(), ["build", "plan", "reviewer"]);
    say(&session, "go").await;
    assert!(last_system(&world).starts_with("Review it.\n"), "{}", last_system(&world));
    let requests = world.model.requests();
    let offered: Vec<_> = requests[0].tools.iter().map(|spec| &*spec.id).collect();
    assert_eq!(offered, ["look"]);
    assert_eq!(agents_of_prompts(&world, session.id()), [Some("reviewer".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn what_changes_on_disk_applies_to_sessions_that_are_opened_later() {
    let files = Files::with("reviewer", &manifest("First."));
    let world = World::new(SCRIPT).with_projects(files.clone());
    let (process, session) = world.session().await;
    session.set_mode("reviewer".into()).await.unwrap();
    files.put("reviewer", &manifest("Second."));
    files.put("other", &manifest("Other."));
    say(&session, "one").await;
    assert!(last_system(&world).starts_with("First.\n"));
    assert!(session.set_mode("other".into()).await.is_err(), "it was not there when the session was opened");
    let later = process.create().await;
    later.set_mode("reviewer".into()).await.unwrap();
    say(&later, "two").await;
    assert!(last_system(&world).starts_with("Second.\n"));
    session.close().await.unwrap();
    let again = process.hub.open(session.id()).await.unwrap();
    assert_eq!(again.attach(None, AttachFrom::Now).await.unwrap().chosen.agent, "reviewer");
    say(&again, "three").await;
    assert!(last_system(&world).starts_with("Second.\n"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_gone_is_answered_for_by_the_usual_one() {
    let files = Files::with("reviewer", &manifest("Review it."));
    let world = World::new(SCRIPT).with_projects(files.clone());
    let (process, session) = world.session().await;
    session.set_mode("reviewer".into()).await.unwrap();
    files.0.lock().unwrap().clear();
    session.close().await.unwrap();
    let again = process.hub.open(session.id()).await.unwrap();
    let (shown, _reader) = read(join(&again, answering(&[])).await);
    say(&again, "go").await;
    assert!(!last_system(&world).starts_with("Review it."));
    assert!(notices(&shown).iter().any(|told| told.contains("There is no agent `reviewer` here")));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waited_names_the_agent_that_answers_it() {
    let world =
        World::new("on \"first\"\n call touch {\"path\":\"a\"}\n ---\n text \"one\"\non *\n text \"two\"");
    let (_process, session) = world.session().await;
    let _joined = join(&session, answering(&[Answer::RejectOnce])).await;
    session.set_mode("plan".into()).await.unwrap();
    let first = session.prompt(prompt("first"));
    let second = session.prompt(prompt("second"));
    session.set_mode("build".into()).await.unwrap();
    assert!(matches!(end_of(first).await, TurnEnd::Finished(_)));
    assert!(matches!(end_of(second).await, TurnEnd::Finished(_)));
    say(&session, "third").await;
    assert_eq!(agents_of_prompts(&world, session.id()), [Some("plan".to_owned()), None, None]);
    let told: Vec<String> = world
        .messages(session.id(), Role::User)
        .iter()
        .flatten()
        .filter_map(|part| match part {
            attache_core::part::Part::Data { data, .. } => data["mode"].as_str().map(str::to_owned),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["build"], "told once; the first prompt has the system prompt of its agent");
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_take_fewer_steps_than_the_host_allows() {
    let text = "---\nmode: primary\ndescription: x\nmax_steps: 1\n---\nx";
    let world = World::new(SCRIPT).with_projects(Files::with("short", text));
    let (_process, session) = world.session().await;
    session.set_mode("short".into()).await.unwrap();
    assert_eq!(say(&session, "go").await, TurnEnd::StepLimit);
    session.set_mode("build".into()).await.unwrap();
    assert!(matches!(say(&session, "again").await, TurnEnd::Finished(_)));
}

const PLANNED: &str = "on \"go\"\n call id=p plan_exit {\"path\":\"plan\"}\n call id=t touch {\"path\":\"a\"}\n ---\n \
                       call id=h hang {\"path\":\"a\"}\non *\n text \"fine\"";

/// The states of the calls of the first answer.
fn states_of_calls(world: &World, session: &attache_core::ids::SessionId) -> Vec<ToolState> {
    tools_of(&world.answers(session)[0]).iter().map(|tool| tool.state).collect()
}

#[tokio::test(start_paused = true)]
async fn after_an_agreement_the_rest_of_the_turn_is_another_agents() {
    let world = World::new(PLANNED);
    let (process, session) = world.session().await;
    let _joined = join(&session, answering(&[Answer::AllowOnce, Answer::AllowOnce])).await;
    session.set_mode("plan".into()).await.unwrap();
    let _ticket = session.prompt(prompt("go"));
    while world.runs.of("h") == 0 {
        pause(1).await;
    }
    // The call behind the proposal, in the same step, is judged by the rules of the new mode.
    assert_eq!(world.runs.of("t"), 1);
    let requests = world.model.requests();
    let offers = |request: usize, tool: &str| requests[request].tools.iter().any(|spec| *spec.id == *tool);
    assert!(offers(0, "plan_exit") && !offers(0, "touch"));
    assert!(!offers(1, "plan_exit") && offers(1, "touch"));
    assert!(requests[0].system.contains("in plan mode") && !requests[1].system.contains("in plan mode"));
    pause(30).await;
    let id = session.id().clone();
    process.kill();
    // Killed in the middle of building: the mode stays what its user made it.
    let next = world.process();
    let session = next.hub.open(&id).await.unwrap();
    assert_eq!(session.attach(None, AttachFrom::Now).await.unwrap().chosen.agent, "build");
    let states = states_of_calls(&world, &id);
    assert_eq!(states, [ToolState::OutputAvailable, ToolState::OutputAvailable, ToolState::OutputError]);
    let decided = tools_of(&world.answers(&id)[0])[0].tool_metadata.clone().unwrap();
    assert_eq!(decided["attache"]["decision"]["by"], "person");
    say(&session, "next").await;
    assert_eq!(agents_of_prompts(&world, &id), [Some("plan".to_owned()), None]);
    let last = world.model.requests().pop().unwrap();
    let said = format!("{:?}", last.passages.last().unwrap().parts);
    assert!(!said.contains("<mode>"), "the call told it: {said}");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_proposal_that_is_turned_down_changes_nothing() {
    let world = World::new(PLANNED);
    let (process, session) = world.session().await;
    let _joined = join(&session, answering(&[Answer::RejectOnce])).await;
    session.set_mode("plan".into()).await.unwrap();
    let ticket = session.prompt(prompt("go"));
    while world.runs.of("h") == 0 {
        pause(1).await;
    }
    session.cancel();
    drop(end_of(ticket).await);
    assert_eq!(world.runs.of("t"), 0);
    let states = states_of_calls(&world, session.id());
    assert_eq!(states, [ToolState::OutputDenied, ToolState::OutputError, ToolState::OutputError]);
    assert!(world.model.requests()[1].system.contains("in plan mode"));
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(session.attach(None, AttachFrom::Now).await.unwrap().chosen.agent, "plan");
}

/// An "always" about anything else never covers the mode.
#[tokio::test(start_paused = true)]
async fn no_other_answer_than_yes_switches_the_mode() {
    for answer in
        [Answer::AllowAlways, Answer::AllowEdits, Answer::RejectAlways, Answer::Unsaid, Answer::Unable]
    {
        let world = World::new("on *\n call plan_exit {\"path\":\"plan\"}\n ---\n text \"fine\"");
        let (_process, session) = world.session().await;
        let joined = join(&session, answering(std::slice::from_ref(&answer))).await;
        session.set_mode("plan".into()).await.unwrap();
        assert!(matches!(say(&session, "go").await, TurnEnd::Finished(_)), "{answer:?}");
        let chosen = session.attach(None, AttachFrom::Now).await.unwrap().chosen;
        assert_eq!(chosen.agent, "plan", "{answer:?}");
        assert_eq!(states_of_calls(&world, session.id()), [ToolState::OutputDenied], "{answer:?}");
        drop(joined);
    }
}
