//! Skills and commands of users and projects: known before the first turn, written out for the model, stored as
//! they were typed, the same after a restart.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::command_templates::CommandTemplate;
use attache_core::hub::AttachFrom;
use attache_core::ids::MessageId;
use attache_core::part::{Part, Role};
use attache_core::ports::tool::Workspace;
use attache_core::ports::{BoxFuture, FoundKnowledge, ModelRequest, Surroundings, WorkspaceLook};
use attache_core::prompt::text_of as prompt_text;
use attache_core::skills::{Skill, Skills};
use attache_core::turn::TurnEnd;
use attache_core::watchdog::ReadRules;

use crate::world::*;

const SCRIPT: &str =
    "model other context=50000\non \"slow\"\n delay 50ms\n text \"slow\"\non *\n text \"fine\"";

/// Files that are found after a while, and may change.
#[derive(Debug)]
struct Shelf {
    templates: Mutex<Vec<(&'static str, &'static str)>>,
    skills: Mutex<Vec<(&'static str, &'static str)>>,
    takes: Duration,
    looks: Mutex<u32>,
}

impl Shelf {
    fn with(
        templates: &[(&'static str, &'static str)],
        skills: &[(&'static str, &'static str)],
    ) -> Arc<Self> {
        Arc::new(Self {
            templates: Mutex::new(templates.to_vec()),
            skills: Mutex::new(skills.to_vec()),
            takes: Duration::from_millis(30),
            looks: Mutex::default(),
        })
    }
}

fn skill(name: &str, description: &str) -> Arc<Skill> {
    let path = PathBuf::from(format!("/skills/{name}/SKILL.md"));
    let text = format!("---\nname: {name}\ndescription: {description}\n---\n");
    let skill = Skill::parse(&path, path.clone(), &text).unwrap();
    skill.body.set(format!("How to {name}.").into()).unwrap();
    Arc::new(skill)
}

impl Surroundings for Shelf {
    fn look(&self, _: Arc<Workspace>, _: Option<ReadRules>) -> BoxFuture<'static, WorkspaceLook> {
        Box::pin(std::future::ready(WorkspaceLook::default()))
    }

    fn uncommitted(&self, _: Arc<Workspace>) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn knowledge(&self, _: Arc<Workspace>, _: Option<ReadRules>) -> BoxFuture<'static, FoundKnowledge> {
        *self.looks.lock().unwrap() += 1;
        let templates = self.templates.lock().unwrap().clone().into_iter();
        let templates = templates.map(|(name, text)| CommandTemplate::parse(name, text).unwrap()).collect();
        let list = self.skills.lock().unwrap().iter().map(|(name, about)| skill(name, about)).collect();
        let skills = Skills { list, directories: Vec::new() };
        let left_out = vec!["/w/.agents/skills/x/SKILL.md: line 3: not a key".to_owned()];
        let takes = self.takes;
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            FoundKnowledge { skills, templates, left_out, notes: Vec::new() }
        })
    }
}

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

/// What the model was sent, passage by passage.
fn sent(world: &World) -> Vec<Vec<String>> {
    let texts =
        |request: &ModelRequest| request.passages.iter().map(|passage| prompt_text(&passage.parts)).collect();
    world.model.requests().iter().map(texts).collect()
}

#[tokio::test(start_paused = true)]
async fn a_template_is_written_out_for_the_model_and_stored_as_it_was_typed() {
    let shelf = Shelf::with(&[("fix", "Fix issue $1, then $2."), ("mode", "never")], &[]);
    let world = World::new(SCRIPT).with_surroundings(shelf.clone());
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "/fix 12 'run it'").await, finished());
    assert_eq!(say(&session, "/unknown 12").await, finished());
    assert_eq!(say(&session, "/mode plan").await, finished());
    assert_eq!(*shelf.looks.lock().unwrap(), 1, "once per session and process");
    let stored = world.messages(session.id(), Role::User);
    let Part::Data { name, data, .. } = &stored[0][0] else { panic!("{:?}", stored[0]) };
    assert_eq!((name.as_str(), data["text"].as_str()), ("command", Some("/fix 12 'run it'")));
    *shelf.templates.lock().unwrap() = vec![("fix", "Something else")];
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "next").await, finished());
    let expected = [
        vec!["Fix issue 12, then run it."],
        vec!["Fix issue 12, then run it.", "fine", "/unknown 12"],
        vec!["Fix issue 12, then run it.", "fine", "/unknown 12", "fine", "next"],
    ];
    assert_eq!(sent(&world), expected, "what was sent once stays the same");
    let title = world.disk.lock().unwrap().sessions[&id].metadata.title().map(str::to_owned);
    assert_eq!(title.as_deref(), Some("/fix 12 'run it'"));
}

#[tokio::test(start_paused = true)]
async fn a_command_sent_twice_under_one_id_is_one_message_though_its_file_changed() {
    let shelf = Shelf::with(&[("fix", "Fix it.")], &[]);
    let world = World::new(SCRIPT).with_surroundings(shelf.clone());
    let (process, session) = world.session().await;
    answer(session.prompt(prompt_with_id("/fix", "msg_same"))).await.unwrap();
    *shelf.templates.lock().unwrap() = vec![("fix", "---\nagent: plan\n---\nFix it better.")];
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(answer(session.prompt(prompt_with_id("/fix", "msg_same"))).await.unwrap().end, finished());
    assert_eq!(sent(&world).len(), 1);
    assert!(answer(session.prompt(prompt_with_id("/fix now", "msg_same"))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_template_may_name_who_answers_its_turn_and_only_that() {
    let planned = "---\nagent: plan\nmodel: other\n---\nPlan $ARGUMENTS";
    let wrong = "---\nagent: nobody\n---\nx";
    let shelf = Shelf::with(&[("plan", planned), ("wrong", wrong), ("bad", "---\nmodel: a/b\n---\nx")], &[]);
    let world = World::new(SCRIPT).with_surroundings(shelf);
    let (_process, session) = world.session().await;
    for text in ["one", "/plan it", "two"] {
        assert_eq!(say(&session, text).await, finished());
    }
    let requests = world.model.requests();
    let models: Vec<_> = requests.iter().map(|request| request.info.model.model_id.clone()).collect();
    assert_eq!(models, ["default", "other", "default"]);
    assert_ne!(requests[0].system, requests[1].system);
    assert_eq!(requests[0].system, requests[2].system);
    assert_eq!(session.attach(None, AttachFrom::Now).await.unwrap().chosen.agent, "build");
    let error = answer(session.prompt(prompt("/wrong"))).await.unwrap_err().to_string();
    assert_eq!(error, "the command `/wrong`: there is no agent `nobody`; available: build, plan");
    let error = answer(session.prompt(prompt("/bad"))).await.unwrap_err().to_string();
    assert!(error.starts_with("the command `/bad`: there is no model `a/b`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_command_that_was_edited_while_nobody_had_the_session_open_is_written_out_too() {
    let world = World::new(SCRIPT).with_surroundings(Shelf::with(&[("fix", "Fix $1.")], &[]));
    let (process, session) = world.session().await;
    let id = session.id().clone();
    let slow = session.prompt(prompt("slow"));
    let waiting = session.prompt(prompt_with_id("later", "msg_later"));
    slow.accepted.await.unwrap();
    waiting.accepted.await.unwrap();
    process.hub.shutdown().await;
    process.kill();
    let process = world.process();
    let found = process.hub.find(&id).await.unwrap();
    found.edit_queued(MessageId::new("msg_later"), prompt("/fix it")).await.unwrap();
    let session = process.hub.open(&id).await.unwrap();
    until_stored(&world, |disk| disk.conversation(&id).len() == 4).await;
    until(&session, |state| *state == attache_core::events::RunState::Idle).await;
    assert_eq!(sent(&world).last().unwrap().last().unwrap(), "Fix it.");
}

#[tokio::test(start_paused = true)]
async fn skills_are_in_the_prompt_by_name_and_the_index_stays_as_it_was() {
    let shelf = Shelf::with(&[], &[("pdf", "Reads PDFs"), ("docs", "Writes docs")]);
    let world = World::new(SCRIPT).with_surroundings(shelf.clone());
    let (process, session) = world.session().await;
    let mut attached = session.attach(None, AttachFrom::Now).await.unwrap();
    let commands = attached.commands.first().await;
    let names: Vec<String> = commands.iter().map(|command| command.name.to_string()).collect();
    assert!(names.ends_with(&["pdf".to_owned(), "docs".to_owned()]), "{names:?}");
    let (shown, _reader) = read(attached);
    assert_eq!(say(&session, "/pdf a.pdf").await, finished());
    *shelf.skills.lock().unwrap() = vec![("new", "Is new")];
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "two").await, finished());
    assert_eq!(say(&session, "/skills").await, finished());
    let listed = text_of(world.answers(&id).last().unwrap());
    assert_eq!(listed, "- `new`: Is new (`/skills/new/SKILL.md`)", "what can be loaded now");
    let requests = world.model.requests();
    let section = "\n\n# Skills\nInstructions for tasks of a kind. When one fits, load it with `skill` before you \
                   begin.\n- pdf: Reads PDFs\n- docs: Writes docs\n\n# Environment\n";
    assert!(requests[0].system.contains(section), "{}", requests[0].system);
    assert_eq!(requests[0].system, requests[1].system, "after a restart, too");
    let expected = "<skill_content name=\"pdf\">\nHow to pdf.\n</skill_content>\nFiles that it names are in \
                    /skills/pdf: read them there when you need them.\n\na.pdf";
    assert_eq!(sent(&world)[0], [expected]);
    assert_eq!(notices(&shown), ["Some skills or commands were left out"], "told once");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_answer_holds_up_nobody_for_ever() {
    let shelf = Shelf {
        templates: Mutex::new(vec![("fix", "Fix it.")]),
        skills: Mutex::default(),
        takes: Duration::from_secs(3_600),
        looks: Mutex::default(),
    };
    let world = World::new(SCRIPT).with_surroundings(Arc::new(shelf));
    let (_process, session) = world.session().await;
    let mut attached = session.attach(None, AttachFrom::Now).await.unwrap();
    assert!(attached.commands.first().await.iter().all(|command| &*command.name != "fix"));
    assert_eq!(say(&session, "/fix").await, finished());
    assert_eq!(sent(&world), [["/fix"]]);
}

#[tokio::test(start_paused = true)]
async fn init_asks_the_agent_for_an_agents_md() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "/init the tests").await, finished());
    let asked = &sent(&world)[0][0];
    assert!(asked.starts_with("Write an `AGENTS.md`") && asked.ends_with("\n\nthe tests"), "{asked}");
}
