//! Titles: the first line at once, a better one by the small model, beside the session and only once.

use std::sync::Arc;

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::hub::{AttachFrom, NewSession, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::{ModelRef, SessionPatch};
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent};
use attache_core::turn::TurnEnd;
use attache_models::{Providers, ScriptModel};
use futures_util::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::*;

const BIG: &str =
    "on \"cancel me\"\n stream 100 \"x\" every 10ms\non *\n text \"Renamed it.\"\n usage input=7 output=2";

fn world(small: &str) -> World {
    world_with(Arc::new(ScriptModel::parse("small", small).unwrap()))
}

fn world_with(small: Arc<dyn Model>) -> World {
    let mut providers = Providers::new();
    providers.insert("script", Arc::new(ScriptModel::parse("script", BIG).unwrap()));
    providers.insert("small", small);
    let mini = Some(ModelRef::new("small", "mini"));
    World::with_model(Arc::new(providers)).with_settings(|settings| settings.small_model = mini)
}

fn title(world: &World, session: &SessionId) -> String {
    world.disk.lock().unwrap().sessions[session].metadata.title().unwrap().to_owned()
}

/// What the small model was asked.
fn asked(world: &World) -> Vec<ModelRequest> {
    world.model.requests().into_iter().filter(|request| request.model().provider_id == "small").collect()
}

/// The titles that were told, each with the message it was told under.
fn told(shown: &Shown) -> Vec<(String, String)> {
    let shown = shown.lock().unwrap();
    let titles = shown.iter().filter_map(|(_, message, chunk)| match chunk {
        Chunk::Data { name, data, .. } if name == "title" => {
            Some((message.to_string(), data["title"].as_str().unwrap().to_owned()))
        }
        _ => None,
    });
    titles.collect()
}

const NAMED: &str = concat!(
    "model mini price_input=100 price_output=1000 thought=off,low\n",
    "on *\n delay 20ms\n text \"\\\"A name for\\nthings\\\"\"\n usage input=50 output=5",
);

#[tokio::test(start_paused = true)]
async fn a_small_model_names_the_session_after_its_first_turn_and_never_again() {
    let world = world(NAMED);
    let (process, session) = world.session().await;
    let id = session.id().clone();
    let (shown, _reader) = read(session.attach(None, AttachFrom::Now).await.unwrap());
    say(&session, "rename things\nplease").await;
    assert_eq!(title(&world, &id), "rename things");
    pause(50).await;
    assert_eq!(title(&world, &id), "A name for");
    let titles = told(&shown);
    assert_eq!(titles[0].1, "rename things");
    assert_eq!(titles[1], (String::new(), "A name for".to_owned()), "under no turn's id");
    let requests = asked(&world);
    assert_eq!(requests.len(), 1);
    assert!(requests[0].tools.is_empty() && requests[0].system.contains("title"));
    assert_eq!(requests[0].thought, Some(ThoughtLevel::Off));
    let text = text_of(&requests[0].passages[0].parts);
    assert!(text.contains("rename things\nplease") && text.contains("Renamed it."), "{text}");
    let totals = world.disk.lock().unwrap().sessions[&id].totals;
    assert_eq!((totals.prompt_tokens, totals.completion_tokens), (57, 7));
    assert!((totals.cost_usd - 0.01).abs() < 1e-9, "{totals:?}");
    world.check_rest(&id);
    say(&session, "and again").await;
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    say(&session, "and once more").await;
    pause(50).await;
    assert_eq!((asked(&world).len(), title(&world, &id).as_str()), (1, "A name for"));
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn its_cost_is_told_with_the_next_step_and_its_tokens_are_no_context() {
    let world = world(NAMED);
    let (_process, session) = world.session().await;
    let (shown, _reader) = read(session.attach(None, AttachFrom::Now).await.unwrap());
    say(&session, "one").await;
    pause(50).await;
    say(&session, "two").await;
    pause(10).await;
    let shown = shown.lock().unwrap();
    let usages: Vec<_> = shown
        .iter()
        .filter_map(|(_, _, chunk)| match chunk {
            Chunk::Data { name, data, .. } if name == "usage" => Some(data),
            _ => None,
        })
        .collect();
    assert_eq!(usages.len(), 2, "a title is no step");
    assert_eq!((usages[0].get("cost_usd"), &usages[1]["cost_usd"]), (None, &json!(0.01)));
    assert_eq!(usages[1]["context_used"], 9);
}

#[tokio::test(start_paused = true)]
async fn without_a_small_model_or_with_one_that_fails_the_first_line_stands() {
    for (small, configured, calls) in [
        ("on *\n text \"unused\"", None, 0),
        ("on *\n text \"unused\"", Some(ModelRef::new("gone", "mini")), 0),
        ("on *\n error permanent \"no\"", Some(ModelRef::new("small", "mini")), 1),
        ("on *\n error transient \"no\"", Some(ModelRef::new("small", "mini")), 1),
        ("on *\n text \"half\"\n cut", Some(ModelRef::new("small", "mini")), 1),
        ("on *\n panic", Some(ModelRef::new("small", "mini")), 1),
        ("on *\n text \"``\"", Some(ModelRef::new("small", "mini")), 1),
        ("on *\n delay 70000ms\n text \"late\"", Some(ModelRef::new("small", "mini")), 1),
    ] {
        let world = world(small).with_settings(|settings| settings.small_model = configured);
        let (_process, session) = world.session().await;
        for prompt in ["one", "two"] {
            assert!(matches!(say(&session, prompt).await, TurnEnd::Finished(_)));
            pause(100_000).await;
        }
        assert_eq!(title(&world, session.id()), "one", "{small}");
        assert_eq!(asked(&world).len(), calls, "{small}");
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_title_and_it_may_come_in_the_middle_of_a_turn() {
    let world = world("on *\n delay 500ms\n text \"In time\"");
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    let started = tokio::time::Instant::now();
    say(&session, "two").await;
    assert!(started.elapsed().as_millis() < 500);
    assert_eq!(say(&session, "cancel me").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(title(&world, session.id()), "In time");
    world.check_rest(session.id());
}

/// Never answers. Shows whether somebody still listens.
#[derive(Debug, Default)]
struct Hanging(Arc<()>);

impl Hanging {
    fn listeners(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

impl Model for Hanging {
    fn available(&self) -> Arc<[ModelInfo]> {
        Arc::new([ModelInfo::undescribed(ModelRef::new("small", "mini"))])
    }

    fn stream(
        &self,
        _request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let listener = self.0.clone();
        let never = async move {
            std::future::pending::<()>().await;
            drop(listener);
            Err(ModelError::Permanent("never".into()))
        };
        futures_util::stream::once(never).boxed()
    }
}

/// Ends the making of a title in some way.
async fn ended_by(end: impl AsyncFnOnce(&Process, &SessionHandle)) -> (World, SessionId) {
    let small = Arc::new(Hanging::default());
    let world = world_with(small.clone());
    let (process, session) = world.session().await;
    say(&session, "one").await;
    pause(10).await;
    assert_eq!(small.listeners(), 1);
    end(&process, &session).await;
    pause(10).await;
    assert_eq!(small.listeners(), 0, "the call goes on");
    let id = session.id().clone();
    (world, id)
}

#[tokio::test(start_paused = true)]
async fn a_title_ends_with_its_session() {
    let (world, id) = ended_by(async |_, session| session.close().await.unwrap()).await;
    assert_eq!(title(&world, &id), "one");
    let (world, id) = ended_by(async |process, _| process.hub.shutdown().await).await;
    assert_eq!(title(&world, &id), "one");
    world.check_rest(&id);
    let (world, id) =
        ended_by(async |process, session| process.hub.delete(session.id()).await.unwrap()).await;
    assert!(!world.disk.lock().unwrap().sessions.contains_key(&id));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_given_meanwhile_stays() {
    let mut patch = SessionPatch::default();
    patch.metadata.set_title("My own");
    let (world, id) = ended_by(async move |_, session| session.patch(patch).await.unwrap()).await;
    assert_eq!(title(&world, &id), "My own");
}

#[tokio::test(start_paused = true)]
async fn the_first_turn_that_finishes_names_the_session() {
    let world = world(NAMED);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("cancel me"));
    pause(50).await;
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    pause(50).await;
    assert_eq!((asked(&world).len(), title(&world, session.id()).as_str()), (0, "cancel me"));
    say(&session, "now").await;
    pause(50).await;
    assert_eq!(title(&world, session.id()), "A name for");
    let text = text_of(&asked(&world)[0].passages[0].parts);
    assert!(text.contains("now") && !text.contains("cancel me"), "{text}");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_copy_keeps_the_name_and_gets_none_of_its_own() {
    let world = world(NAMED);
    let (process, session) = world.session().await;
    say(&session, "one").await;
    pause(50).await;
    let copy = NewSession { root: "/w".into(), place: Default::default() };
    let copy = process.hub.fork(session.id(), copy).await.unwrap();
    say(&copy, "two").await;
    pause(50).await;
    assert_eq!((asked(&world).len(), title(&world, copy.id()).as_str()), (1, "A name for (copy)"));
}

/// A provider that knows which of its models is small.
#[derive(Debug)]
struct WithSmall(ScriptModel);

impl Model for WithSmall {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.0.available()
    }

    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.0.describe(model)
    }

    fn small(&self, beside: &ModelRef) -> Option<ModelRef> {
        Some(ModelRef::new(&beside.provider_id, "mini"))
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        self.0.stream(request, cancel)
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_configured_one_the_small_model_of_the_same_provider_is_asked() {
    let mut providers = Providers::new();
    for name in ["script", "other"] {
        let script = "on \"<user>\"*\n text \"A name\"\non *\n text \"Done.\"";
        providers.insert(name, Arc::new(WithSmall(ScriptModel::parse(name, script).unwrap())));
    }
    let world = World::with_model(Arc::new(providers));
    let (_process, session) = world.session().await;
    session.set_model(ModelRef::new("other", "default")).await.unwrap();
    say(&session, "one").await;
    pause(50).await;
    assert_eq!(title(&world, session.id()), "A name");
    let asked: Vec<_> = world.model.requests().iter().map(|asked| asked.model().to_string()).collect();
    assert_eq!(asked, ["other/default", "other/mini"]);
}

/// As with every agent: what its file says of its model counts, what it does not say stays.
#[tokio::test(start_paused = true)]
async fn the_model_and_the_effort_of_the_title_agent_are_those_of_its_file() {
    let both = "model mini thought=off,low\nmodel other thought=off,low\non *\n text \"A name\"";
    for (front, model, thought) in [
        ("model: small/other\neffort: low\n", "other", Some(ThoughtLevel::Low)),
        ("effort: low\n", "mini", Some(ThoughtLevel::Low)),
        ("effort: high\n", "mini", None),
        ("model: small/other\n", "other", Some(ThoughtLevel::Off)),
    ] {
        let manifest = format!("---\nid: title\n{front}---\nYou name things.\n");
        let world = world(both).with_agents(&[("title", &manifest)]);
        let (_process, session) = world.session().await;
        say(&session, "go").await;
        pause(50).await;
        let [asked] = &asked(&world)[..] else { panic!("{front}: not asked once") };
        assert_eq!((&*asked.model().model_id, asked.thought), (model, thought), "{front}");
        assert_eq!(&*asked.system, "You name things.", "{front}");
        assert_eq!(title(&world, session.id()), "A name");
    }
}
