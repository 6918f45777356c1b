//! The system prompt and its environment: the same to the byte from turn to turn, changes told with the next message.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::hub::SessionHandle;
use attache_core::part::{Part, Role};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, Surroundings};
use attache_core::prompt::digest;

use crate::world::*;

const SCRIPT: &str = "model big context=900000\non *\n text \"x\"";

#[derive(Debug)]
struct Branch(Mutex<Option<&'static str>>);

impl Branch {
    fn on(branch: &'static str) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(branch))))
    }

    fn switch(&self, branch: Option<&'static str>) {
        *self.0.lock().unwrap() = branch;
    }
}

impl Surroundings for Branch {
    fn git(&self, root: PathBuf) -> BoxFuture<'static, Option<String>> {
        assert_eq!(root, PathBuf::from("/w"));
        let branch = self.0.lock().unwrap().map(|branch| format!("branch {branch}"));
        Box::pin(std::future::ready(branch))
    }
}

#[derive(Debug)]
struct Stuck;

impl Surroundings for Stuck {
    fn git(&self, _root: PathBuf) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::pending())
    }
}

/// What each user message told beside the user's words.
fn news(world: &World, session: &SessionHandle) -> Vec<Option<String>> {
    let told = |parts: &Vec<Part>| {
        parts.iter().find_map(|part| match part {
            Part::Data { name, data, .. } if name == "environment" => {
                data["text"].as_str().map(str::to_owned)
            }
            _ => None,
        })
    };
    world.messages(session.id(), Role::User).iter().map(told).collect()
}

fn systems(world: &World) -> Vec<String> {
    world.model.requests().iter().map(|request| request.system.to_string()).collect()
}

fn told(lines: &str) -> Option<String> {
    Some(format!("<environment>\nChanged since the beginning:\n{lines}</environment>"))
}

#[tokio::test(start_paused = true)]
async fn sections_stand_in_their_order_and_the_digest_is_of_the_text() {
    let world = World::new(SCRIPT).with_surroundings(Branch::on("main"));
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let system = systems(&world).remove(0);
    let environment = "\n\n# Environment\nPlatform: test\nWorkspace: /w\nAlso reachable: nothing else\n\
                       Scratch directory: /scratch/SESSION\nGit: branch main\nDate: 2026-01-01\nModel: script/default\n\n# Tools\n";
    let environment = environment.replace("SESSION", session.id().as_str());
    let place = system.find(&environment).unwrap_or_else(|| panic!("{system}"));
    assert!(place > 0 && system[..place].lines().count() > 1, "the agent's own prompt comes first");
    assert!(system[place + environment.len()..].starts_with("- "), "the tools come last");
    let disk = world.disk.lock().unwrap();
    let answer = &disk.conversation(session.id())[1];
    assert_eq!(answer.metadata["system_prompt_digest"], digest(system.as_bytes()));
}

#[tokio::test(start_paused = true)]
async fn the_prompt_stays_and_each_change_is_told_once() {
    let branch = Branch::on("main");
    let world = World::new(SCRIPT).with_surroundings(branch.clone());
    let (process, session) = world.session().await;
    say(&session, "one").await;
    say(&session, "two").await;
    session.set_model(ModelRef::new("script", "big")).await.unwrap();
    say(&session, "three").await;
    say(&session, "four").await;
    branch.switch(Some("other"));
    tokio::time::advance(Duration::from_secs(86_400)).await;
    say(&session, "five").await;
    // What can't be told is no change.
    branch.switch(None);
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    say(&session, "six").await;
    session.set_model(ModelRef::new("script", "default")).await.unwrap();
    say(&session, "seven").await;
    let systems = systems(&world);
    assert!(systems.iter().all(|system| *system == systems[0]), "{systems:#?}");
    assert_eq!(
        news(&world, &session),
        [
            None,
            None,
            told("Model: script/big\n"),
            None,
            told("Git: branch other\nDate: 2026-01-02\n"),
            None,
            told("Model: script/default\n"),
        ]
    );
    let digests: Vec<_> = {
        let disk = world.disk.lock().unwrap();
        let rows = disk.conversation(&id).into_iter().filter(|row| row.role == Role::Assistant);
        rows.map(|row| row.metadata["system_prompt_digest"].clone()).collect()
    };
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    // What was told stays in the history as it was: the prefix of every request is the one before.
    let requests = world.model.requests();
    for pair in requests.windows(2) {
        assert!(pair[1].passages.starts_with(&pair[0].passages));
    }
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn another_agent_has_another_prompt_and_the_same_environment() {
    let world = World::new(SCRIPT).with_surroundings(Branch::on("main"));
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    session.set_mode("plan".into()).await.unwrap();
    say(&session, "two").await;
    let systems = systems(&world);
    assert_ne!(systems[0], systems[1]);
    let environment = |system: &str| {
        system.split("# Environment").nth(1).unwrap().split("# Tools").next().unwrap().to_owned()
    };
    assert_eq!(environment(&systems[0]), environment(&systems[1]));
    assert_eq!(news(&world, &session), [None, None]);
}

#[tokio::test(start_paused = true)]
async fn the_same_message_again_is_the_same_message_whatever_was_told_with_it() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    session.set_model(ModelRef::new("script", "big")).await.unwrap();
    end_of(session.prompt(prompt_with_id("two", "m2"))).await;
    end_of(session.prompt(prompt_with_id("two", "m2"))).await;
    assert_eq!(world.prompts(session.id()), ["one", "two"]);
    assert_eq!(news(&world, &session), [None, told("Model: script/big\n")]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_message_is_told_what_holds_when_it_fires() {
    let world = World::new("model big\non \"slow\"\n delay 1s\n text \"x\"\non *\n text \"y\"");
    let (_process, session) = world.session().await;
    let slow = session.prompt(prompt("slow"));
    let waiting = session.prompt(prompt("waiting"));
    session.set_model(ModelRef::new("script", "big")).await.unwrap();
    end_of(slow).await;
    end_of(waiting).await;
    assert_eq!(news(&world, &session), [None, told("Model: script/big\n")]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_answer_holds_no_turn_up() {
    let world = World::new(SCRIPT).with_surroundings(Arc::new(Stuck));
    let (_process, session) = world.session().await;
    let start = tokio::time::Instant::now();
    say(&session, "go").await;
    assert!(start.elapsed() < Duration::from_secs(1));
    assert!(!systems(&world)[0].contains("Git:"));
}
