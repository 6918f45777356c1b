//! Mode, model, titles and notices: stored, told to everybody, in force from the next turn on.

use std::sync::Arc;

use attache_core::chunk::Chunk;
use attache_core::events::RunState;
use attache_core::hub::{AttachFrom, HubError, NewSession, SessionHandle};
use attache_core::part::Role;
use attache_core::ports::Model;
use attache_core::ports::client::Answer;
use attache_core::ports::model::ThoughtLevel;
use attache_core::ports::store::ModelRef;
use attache_core::turn::TurnEnd;
use attache_models::{Providers, ScriptModel};
use attache_testkit::fakes::model::Keyed;

use crate::world::*;

const SCRIPT: &str =
    "model big context=9000 max_output=100\non *\n call touch {\"path\":\"a\"}\n ---\n text \"fine\"";

fn model(name: &str) -> ModelRef {
    ModelRef { provider_id: "script".into(), model_id: name.into(), variant: None }
}

#[tokio::test(start_paused = true)]
async fn a_mode_holds_from_the_next_turn_on_and_after_a_restart() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let (shown, _reader) = read(session.attach(None, AttachFrom::Now).await.unwrap());
    assert_eq!(session.set_mode("plan".into()).await.unwrap().agent, "plan");
    assert!(matches!(session.set_mode("nothing".into()).await, Err(HubError::Invalid(_))));
    say(&session, "go").await;
    assert!(world.runs.all().is_empty());
    let tools = &tools_of(&world.answers(session.id())[0]);
    assert!(tools[0].error_text.as_ref().unwrap().contains("plan"));
    assert!(world.model.requests()[0].tools.iter().all(|spec| &*spec.id != "touch"));
    pause(10).await;
    let told = shown.lock().unwrap().iter().filter(|(_, _, chunk)| is_mode(chunk)).count();
    assert_eq!(told, 1);
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    let attachment = session.attach(None, AttachFrom::Beginning).await.unwrap();
    assert_eq!(attachment.chosen.agent, "plan");
    world.check_rest(&id);
}

fn is_mode(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Data { name, .. } if name == "mode")
}

#[tokio::test(start_paused = true)]
async fn a_model_is_used_by_the_next_turn() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    assert_eq!(session.set_model(model("big")).await.unwrap().model, Some(model("big")));
    assert!(session.set_model(model("unknown")).await.is_err());
    session.set_mode("plan".into()).await.unwrap();
    say(&session, "go").await;
    assert_eq!(*world.model.requests()[0].model(), model("big"));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_could_not_be_stored_is_not_in_force() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    process.store.fail_commit(0);
    assert!(session.set_mode("plan".into()).await.is_err());
    process.store.fail_commit(u64::MAX);
    let attachment = session.attach(None, AttachFrom::Beginning).await.unwrap();
    assert_eq!(attachment.chosen.agent, "build");
    assert_eq!(session.set_mode("plan".into()).await.unwrap().agent, "plan");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_session_is_gone_for_everybody() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    pause(50).await;
    process.hub.delete(session.id()).await.unwrap();
    drop(answer(ticket).await);
    process.hub.delete(session.id()).await.unwrap();
    assert_eq!(
        process.hub.open(session.id()).await.unwrap_err(),
        HubError::UnknownSession { id: session.id().clone(), nearest: None }
    );
    assert!(world.disk.lock().unwrap().messages.is_empty());
}

const THINKERS: &str =
    "model deep thought=low,high\nmodel shallow thought=low\nmodel plain\non *\n text \"fine\"";

/// The models that messages say they were answered by.
fn models_of_answers(world: &World, session: &SessionHandle) -> Vec<String> {
    let disk = world.disk.lock().unwrap();
    let answers = disk.conversation(session.id()).into_iter().filter(|row| row.role == Role::Assistant);
    answers.map(|row| row.metadata.model().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_thought_level_reaches_the_model_and_leaves_the_prompt_as_it_was() {
    let world = World::new(THINKERS);
    let (process, session) = world.session().await;
    assert!(matches!(session.set_thought(Some(ThoughtLevel::Low)).await, Err(HubError::Invalid(_))));
    assert!(matches!(session.set_thought(None).await, Err(HubError::Invalid(_))));
    session.set_model(model("deep")).await.unwrap();
    say(&session, "one").await;
    let chosen = session.set_thought(Some(ThoughtLevel::High)).await.unwrap();
    assert_eq!((chosen.model, chosen.thought), (Some(model("deep")), Some(ThoughtLevel::High)));
    assert_eq!(chosen.thought_levels, [ThoughtLevel::Low, ThoughtLevel::High]);
    assert!(matches!(session.set_thought(Some(ThoughtLevel::Max)).await, Err(HubError::Invalid(_))));
    say(&session, "two").await;
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    say(&session, "three").await;
    assert_eq!(session.set_thought(None).await.unwrap().thought, None);
    say(&session, "four").await;
    let requests = world.model.requests();
    let thoughts: Vec<_> = requests.iter().map(|request| request.thought).collect();
    let high = Some(ThoughtLevel::High);
    assert_eq!(thoughts, [None, high, high, None]);
    assert!(requests.iter().all(|request| request.system == requests[0].system));
    assert!(requests.iter().all(|request| *request.model() == model("deep")));
    let (plain, high) = ("script/deep", "script/deep#high");
    assert_eq!(models_of_answers(&world, &session), [plain, high, high, plain]);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_thought_level_is_kept_where_the_next_model_has_it() {
    let world = World::new(THINKERS);
    let (_process, session) = world.session().await;
    session.set_model(model("deep")).await.unwrap();
    session.set_thought(Some(ThoughtLevel::Low)).await.unwrap();
    let thought = async |name: &str| session.set_model(model(name)).await.unwrap().thought;
    assert_eq!(thought("shallow").await, Some(ThoughtLevel::Low));
    assert_eq!(thought("deep").await, Some(ThoughtLevel::Low));
    session.set_thought(Some(ThoughtLevel::High)).await.unwrap();
    assert_eq!(thought("shallow").await, None);
    session.set_thought(Some(ThoughtLevel::Low)).await.unwrap();
    assert_eq!(thought("plain").await, None);
    assert_eq!(thought("deep").await, None);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_configured_model_that_nobody_lists_is_used_as_it_is() {
    let world = World::new(SCRIPT).with_settings(|settings| settings.model = Some(model("brand-new")));
    let (process, session) = world.session().await;
    let listed = process.hub.choices().get().models.iter().map(|info| info.model.clone()).collect::<Vec<_>>();
    assert_eq!(listed, [model("brand-new"), model("default"), model("big")]);
    session.set_mode("plan".into()).await.unwrap();
    say(&session, "go").await;
    assert_eq!(*world.model.requests()[0].model(), model("brand-new"));
    session.set_model(model("big")).await.unwrap();
    assert_eq!(session.set_model(model("brand-new")).await.unwrap().model, Some(model("brand-new")));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_model_is_gone_falls_back_and_says_so() {
    let mut world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    session.set_model(model("big")).await.unwrap();
    let id = session.id().clone();
    process.kill();
    world.change_model(Arc::new(ScriptModel::parse("other", "on *\n text \"hi\"").unwrap()));
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    let attachment = session.attach(Some(answering(&[])), AttachFrom::Beginning).await.unwrap();
    let instead = ModelRef::new("other", "default");
    assert_eq!(attachment.chosen.model, Some(instead.clone()));
    let (shown, _reader) = read(attachment);
    pause(10).await;
    let told = ["script/big is not available; other/default answers instead"];
    assert_eq!(notices(&shown), told);
    say(&session, "go").await;
    pause(10).await;
    assert_eq!(notices(&shown), told, "said once to those who heard it");
    assert_eq!(*world.model.requests()[0].model(), instead);
    assert_eq!(world.disk.lock().unwrap().sessions[&id].model, Some(model("big")), "still what was chosen");
    session.set_model(instead.clone()).await.unwrap();
    assert_eq!(world.disk.lock().unwrap().sessions[&id].model, Some(instead));
    let again = read(session.attach(Some(answering(&[])), AttachFrom::Beginning).await.unwrap());
    pause(10).await;
    assert_eq!(notices(&again.0), Vec::<String>::new());
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn without_a_model_there_are_old_sessions_only_until_a_key_is_found() {
    let keyed = Keyed::new(Arc::new(ScriptModel::parse("script", THINKERS).unwrap()));
    let world = World::with_model(keyed.clone());
    let process = world.process();
    let new = || NewSession { root: "/w".into(), place: Default::default() };
    assert_eq!(process.hub.create(new()).await.unwrap_err(), HubError::NoModel(Vec::new()));
    keyed.store_key();
    // No login told us: the key is looked for because there was none.
    let session = process.hub.create(new()).await.unwrap();
    say(&session, "go").await;
    let id = session.id().clone();
    keyed.remove_key();
    process.hub.refresh_choices().await;
    assert_eq!(answer(session.prompt(prompt("more"))).await.unwrap_err(), HubError::NoModel(Vec::new()));
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    let attachment = session.attach(Some(answering(&[])), AttachFrom::Beginning).await.unwrap();
    assert_eq!(attachment.chosen.model, Some(model("default")));
    let (shown, _reader) = read(attachment);
    assert_eq!(answer(session.prompt(prompt("more"))).await.unwrap_err(), HubError::NoModel(Vec::new()));
    assert_eq!(world.prompts(&id), ["go"], "a refused prompt leaves nothing behind");
    keyed.store_key();
    assert!(matches!(say(&session, "again").await, TurnEnd::Finished(_)));
    pause(10).await;
    assert_eq!(notices(&shown), Vec::<String>::new());
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn an_open_question_is_asked_also_without_a_model() {
    let keyed = Keyed::new(Arc::new(ScriptModel::parse("script", SCRIPT).unwrap()));
    keyed.store_key();
    let world = World::with_model(keyed.clone());
    let (process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    let id = session.id().clone();
    process.kill();
    drop(ticket);
    keyed.remove_key();
    keyed.look_again().await;
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    until(&session, |state| matches!(state, RunState::Error { .. })).await;
    assert_eq!(world.runs.all().len(), 1, "what was allowed was done");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn open_sessions_tell_of_new_choices() {
    let keyed = Keyed::new(Arc::new(ScriptModel::parse("script", SCRIPT).unwrap()));
    keyed.store_key();
    let world = World::with_model(keyed.clone());
    let (process, session) = world.session().await;
    let (shown, _reader) = read(session.attach(None, AttachFrom::Now).await.unwrap());
    process.hub.refresh_choices().await;
    pause(10).await;
    assert!(shown.lock().unwrap().is_empty(), "nothing has changed");
    keyed.remove_key();
    process.hub.refresh_choices().await;
    pause(10).await;
    assert_eq!(shown.lock().unwrap().iter().filter(|(_, _, chunk)| is_mode(chunk)).count(), 1);
    assert!(process.hub.choices().get().models.is_empty());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_vanishes_under_an_open_session_is_told_of_once() {
    let keyed = Keyed::new(Arc::new(ScriptModel::parse("keyed", THINKERS).unwrap()));
    keyed.store_key();
    keyed.look_again().await;
    let mut providers = Providers::new();
    providers.insert("script", Arc::new(ScriptModel::parse("script", THINKERS).unwrap()));
    providers.insert("keyed", keyed.clone());
    let world = World::with_model(Arc::new(providers));
    let (process, session) = world.session().await;
    session.set_model(ModelRef::new("keyed", "deep")).await.unwrap();
    let (shown, _reader) = read(session.attach(None, AttachFrom::Now).await.unwrap());
    for told in [1, 1, 2] {
        keyed.remove_key();
        process.hub.refresh_choices().await;
        say(&session, "go").await;
        pause(10).await;
        assert_eq!(notices(&shown).len(), told);
        if told == 1 && world.model.requests().len() == 2 {
            // Back for a while: when it goes again, that is news.
            keyed.store_key();
            process.hub.refresh_choices().await;
            say(&session, "go").await;
        }
    }
    let asked: Vec<_> =
        world.model.requests().iter().map(|asked| asked.model().provider_id.clone()).collect();
    assert_eq!(asked, ["script", "script", "keyed", "script"]);
    world.check_rest(session.id());
}
