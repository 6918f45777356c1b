//! The system prompt and its environment: the same to the byte from turn to turn, changes told with the next
//! message.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::hub::{AttachFrom, People, SessionHandle};
use attache_core::instructions::{FoundInstructions, InstructionFile, ProjectInstructions};
use attache_core::part::{Part, Role};
use attache_core::ports::store::ModelRef;
use attache_core::ports::tool::Workspace;
use attache_core::ports::{BoxFuture, Surroundings, WorkspaceLook};
use attache_core::prompt::digest;
use attache_core::watchdog::{Approval, Containment, ReadRules};

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
    fn look(
        &self,
        workspace: Arc<Workspace>,
        _rules: Option<ReadRules>,
    ) -> BoxFuture<'static, WorkspaceLook> {
        assert_eq!(workspace.root, PathBuf::from("/w"));
        let git = self.0.lock().unwrap().map(|branch| format!("branch {branch}"));
        Box::pin(std::future::ready(WorkspaceLook { git, ..WorkspaceLook::default() }))
    }

    fn uncommitted(&self, workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>> {
        assert_eq!(workspace.root, PathBuf::from("/w"));
        Box::pin(std::future::ready(Some("2 files changed".to_owned())))
    }
}

#[derive(Debug)]
struct Stuck;

impl Surroundings for Stuck {
    fn look(
        &self,
        _workspace: Arc<Workspace>,
        _rules: Option<ReadRules>,
    ) -> BoxFuture<'static, WorkspaceLook> {
        Box::pin(std::future::pending())
    }

    fn uncommitted(&self, _workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::pending())
    }
}

/// Files of instructions that change.
#[derive(Debug)]
struct Files(Mutex<Vec<(&'static str, String)>>);

impl Files {
    fn hold(files: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect()
    }
}

impl Surroundings for Files {
    fn look(
        &self,
        _workspace: Arc<Workspace>,
        _rules: Option<ReadRules>,
    ) -> BoxFuture<'static, WorkspaceLook> {
        let files = self.0.lock().unwrap().clone();
        let files = files.into_iter().map(|(path, text)| InstructionFile { path: path.into(), text });
        let files = ProjectInstructions(files.collect());
        let left_out = vec!["/w/CLAUDE.md: it leads out of its directory".to_owned()];
        let instructions = FoundInstructions { files, left_out };
        Box::pin(std::future::ready(WorkspaceLook { git: None, instructions }))
    }

    fn uncommitted(&self, _workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_are_captured_once_and_their_changes_told_once() {
    let files = Arc::new(Files(Mutex::new(Files::hold(&[
        ("/u/AGENTS.md", "be brief"),
        ("/w/AGENTS.md", "use tabs"),
    ]))));
    let world = World::new(SCRIPT).with_surroundings(files.clone());
    let (process, session) = world.session().await;
    say(&session, "one").await;
    *files.0.lock().unwrap() = Files::hold(&[("/w/AGENTS.md", "use blanks")]);
    say(&session, "two").await;
    say(&session, "three").await;
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    say(&session, "four").await;
    let systems = systems(&world);
    let (agent, rest) = systems[0].split_once("\n\n# Project instructions\n").unwrap();
    assert!(!agent.contains("# Environment"), "only the agent's own prompt comes before");
    let (section, _) = rest.split_once("\n\n# Environment\n").unwrap();
    assert!(section.find("be brief").unwrap() < section.find("use tabs").unwrap(), "{section}");
    assert!(systems.iter().all(|system| *system == systems[0]), "after a change and a kill, too");
    let news = news(&world, &session);
    let told = "<instructions_changed>\n<instructions file=\"/w/AGENTS.md\">\nuse blanks\n</instructions>\n\
                /u/AGENTS.md is gone: its instructions no longer apply.\n</instructions_changed>";
    assert_eq!(news, [None, Some(told.to_owned()), None, None]);
}

#[tokio::test(start_paused = true)]
async fn instructions_that_are_too_long_are_cut_and_people_are_told_once() {
    let long = "a line of instructions\n".repeat(3_000);
    let files =
        Arc::new(Files(Mutex::new(Files::hold(&[("/u/AGENTS.md", &long), ("/w/AGENTS.md", "near")]))));
    let world = World::new(SCRIPT).with_surroundings(files);
    let (_process, session) = world.session().await;
    let (shown, _reader) = read(session.attach(None, AttachFrom::Now).await.unwrap());
    say(&session, "one").await;
    say(&session, "two").await;
    let system = systems(&world).remove(0);
    assert!(system.contains("near") && system.contains("[cut here"), "{}", system.len());
    assert!(system.len() < 40_000, "{}", system.len());
    let notices = notices(&shown);
    let about = |title: &str| notices.iter().filter(|notice| notice.contains(title)).count();
    assert_eq!(about("instructions are too long"), 1, "{notices:?}");
    assert_eq!(about("were left out"), 1, "{notices:?}");
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
    let (agent, rest) = system.split_once("\n\n# Environment\n").unwrap_or_else(|| panic!("{system}"));
    assert!(agent.lines().count() > 1, "the agent's own prompt comes first");
    let (environment, rules) = rest.split_once("\n\n# Sandbox and questions\n").unwrap();
    let expected = "Platform: test\nWorkspace: /w\nOther directories: none\nScratch directory: /scratch/SESSION\n\
                    Git: branch main\nDate: 2026-01-01 (UTC)\nModel: script/default";
    assert_eq!(environment, expected.replace("SESSION", session.id().as_str()));
    let labels: Vec<_> = rules.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(labels, ["Commands", "Questions"], "and nothing behind them: tools speak for themselves");
    let disk = world.disk.lock().unwrap();
    let answer = &disk.conversation(session.id())[1];
    assert_eq!(answer.metadata.as_map()["system_prompt_digest"], digest(system.as_bytes()));
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
            told("Git: branch other\nDate: 2026-01-02 (UTC)\n"),
            None,
            told("Model: script/default\n"),
        ]
    );
    let digests: Vec<_> = {
        let disk = world.disk.lock().unwrap();
        let rows = disk.conversation(&id).into_iter().filter(|row| row.role == Role::Assistant);
        rows.map(|row| row.metadata.as_map()["system_prompt_digest"].clone()).collect()
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
    let section = |system: &str, title: &str| {
        let behind = system.split_once(&format!("# {title}\n")).unwrap().1;
        behind.split("\n\n# ").next().unwrap().to_owned()
    };
    let environment = |system: &str| section(system, "Environment");
    assert_eq!(environment(&systems[0]), environment(&systems[1]));
    let rules = |system: &str| section(system, "Sandbox and questions");
    assert!(rules(&systems[0]).contains("all else asks the user first"), "{}", systems[0]);
    let planning = rules(&systems[1]);
    assert!(planning.contains("are refused") && !planning.contains("all else asks"), "{planning}");
    let told = "<mode>\nThe mode is now `plan`: Reads and plans. Changes no file and runs only commands that read.\n</mode>";
    assert_eq!(news(&world, &session), [None, Some(told.to_owned())]);
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

#[tokio::test(start_paused = true)]
async fn what_was_uncommitted_at_the_beginning_is_told_once_and_never_waited_for() {
    let told = |system: &str| system.lines().find(|line| line.starts_with("Uncommitted ")).map(str::to_owned);
    let world = World::new(SCRIPT).with_surroundings(Branch::on("main"));
    let (_process, session) = world.session().await;
    // As when a client makes a session: its user still writes.
    let _participant = session.attach(None, AttachFrom::Now).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    say(&session, "one").await;
    say(&session, "two").await;
    for system in systems(&world) {
        assert_eq!(told(&system).as_deref(), Some("Uncommitted at the start: 2 files changed"));
    }
    assert_eq!(news(&world, &session), [None, None], "the model's own edits are no news to it");

    // A program's prompt comes at once; a repository may never answer.
    for surroundings in [Branch::on("main") as Arc<dyn attache_core::ports::Surroundings>, Arc::new(Stuck)] {
        let world = World::new(SCRIPT).with_surroundings(surroundings);
        let (_process, session) = world.session().await;
        let _participant = session.attach(None, AttachFrom::Now).await.unwrap();
        say(&session, "one").await;
        assert_eq!(told(&systems(&world)[0]), None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_asks_and_what_holds_commands_is_said_as_it_is_here() {
    let first = |containment: Containment, approval: Approval, people: People| async move {
        let world = World::new(SCRIPT).with_settings(|settings| {
            settings.containment = containment.into();
            (settings.approval, settings.people) = (approval, people);
        });
        let (_process, session) = world.session().await;
        say(&session, "go").await;
        systems(&world).remove(0)
    };
    for (containment, approval, people, said) in [
        (Containment::Full, Approval::Ask, People::Present, "Commands: run in a sandbox. "),
        (Containment::Full, Approval::Ask, People::Present, "all else asks the user first"),
        (Containment::Reduced, Approval::Ask, People::Present, "Commands: run in a reduced sandbox. "),
        (Containment::None, Approval::Edits, People::Present, "Commands: run without a sandbox. "),
        (Containment::None, Approval::Edits, People::Present, "reading and editing the workspace"),
        (Containment::ExplicitlyOff, Approval::All, People::Present, "with all rights of the user"),
        (
            Containment::ExplicitlyOff,
            Approval::All,
            People::Present,
            "Questions: nothing asks, and nothing outside",
        ),
        (Containment::Full, Approval::Ask, People::Present, "The network has to be granted: "),
        (Containment::Full, Approval::All, People::Present, "no network unless a rule grants it"),
        (Containment::Full, Approval::Ask, People::Absent, "no network unless a rule grants it"),
        (Containment::Full, Approval::Ask, People::Absent, "so everything else is refused"),
        (Containment::Full, Approval::Ask, People::OnlyAProgram, "so everything else is refused"),
    ] {
        let system = first(containment, approval, people).await;
        assert!(system.contains(said), "{said}: {system}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_approval_is_told_with_the_next_message() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    session.set_approval(Approval::Edits).await.unwrap();
    say(&session, "two").await;
    let told = news(&world, &session).remove(1).unwrap();
    assert!(told.contains("\nQuestions: reading and editing the workspace"), "{told}");
    assert_eq!(told.lines().count(), 4, "and nothing else: {told}");
    assert_eq!(systems(&world)[0], systems(&world)[1]);
}
