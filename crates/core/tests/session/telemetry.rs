//! What a host that measures is told: one connected trace per turn, whatever happens in it, and content only
//! where it is wanted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::compactor::Compactor;
use attache_core::events::RunState;
use attache_core::hub::{AttachFrom, People};
use attache_core::ids::Ids;
use attache_core::ports::client::Answer;
use attache_core::ports::store::ModelRef;
use attache_core::ports::telemetry::{
    ContentPolicy, FinishedSpan, SpanContext, SpanKind, SpanStatus, SpanValue,
};
use attache_core::ports::{Clock, Telemetry};
use attache_core::traced_model::TracedModel;
use attache_core::turn::TurnEnd;
use attache_models::{Providers, ScriptModel};
use attache_testkit::fakes::client::PlannedClient;
use attache_testkit::fakes::clock::TokioClock;
use attache_testkit::fakes::store::MemoryStore;
use attache_testkit::fakes::telemetry::RecordedSpans;

use crate::world::*;

const LOOK: &str = "on *\n usage input=7 output=2 reasoning=3 cache_read=11\n call id=l look {\"path\":\"canary\"}\n \
                    ---\n usage input=1 output=1\n text \"canary done\"";
const TOUCH: &str = "on *\n call id=t touch {\"path\":\"a\"}\n ---\n text \"on\"";

fn measured(script: &str, spans: &Arc<RecordedSpans>) -> World {
    World::new(script).with_telemetry(spans.clone())
}

fn withheld() -> Arc<RecordedSpans> {
    RecordedSpans::new(ContentPolicy::Withheld)
}

fn text<'a>(span: &'a FinishedSpan, key: &str) -> &'a str {
    match span.attribute(key) {
        Some(SpanValue::Text(text)) => text,
        other => panic!("{key} of {} is {other:?}", span.name),
    }
}

fn number(span: &FinishedSpan, key: &str) -> i64 {
    match span.attribute(key) {
        Some(SpanValue::Integer(number)) => *number,
        other => panic!("{key} of {} is {other:?}", span.name),
    }
}

fn one(spans: &RecordedSpans, name: &str) -> FinishedSpan {
    let named = spans.named(name);
    let [span] = &named[..] else { panic!("{} of {name}: {:#?}", named.len(), spans.all()) };
    span.clone()
}

/// Names with those of their parents, in the order in which they ended.
fn tree(spans: &[FinishedSpan]) -> Vec<String> {
    let names: HashMap<_, _> = spans.iter().map(|span| (span.context.span_id, span.name.clone())).collect();
    let line = |span: &FinishedSpan| match span.parent {
        Some(parent) => {
            let parent = names.get(&parent).map_or("nobody", |name| name.as_ref());
            format!("{} < {parent}", span.name)
        }
        None => span.name.to_string(),
    };
    spans.iter().map(line).collect()
}

/// One trace, one root, every parent there, no id twice, no span ends before it begins.
fn check_connected(spans: &[FinishedSpan]) {
    let traces: HashSet<_> = spans.iter().map(|span| span.context.trace_id).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let ids: HashSet<_> = spans.iter().map(|span| span.context.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "{spans:#?}");
    let roots: Vec<_> = spans.iter().filter(|span| span.parent.is_none()).collect();
    assert_eq!(roots.len(), 1, "{spans:#?}");
    for span in spans {
        assert!(span.parent.is_none_or(|parent| ids.contains(&parent)), "{span:#?} of {:#?}", tree(spans));
        assert!(span.started_at <= span.ended_at, "{span:?}");
        assert!(roots[0].started_at <= span.started_at && span.ended_at <= roots[0].ended_at, "{span:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_one_trace_of_its_model_calls_and_tools() {
    let spans = withheld();
    let world = measured(LOOK, &spans);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "canary").await, TurnEnd::Finished(FinishReason::Stop));
    let all = spans.all();
    check_connected(&all);
    assert_eq!(
        tree(&all),
        [
            "chat default < session.run",
            "permission.evaluate < session.run",
            "tool.call < session.run",
            "chat default < session.run",
            "session.run < session.turn",
            "session.turn",
        ]
    );
    for span in &all {
        assert_eq!(text(span, "gen_ai.conversation.id"), session.id().as_str());
        assert_eq!(span.status, SpanStatus::Unset);
        assert_eq!(span.attribute("error.type"), None);
    }
    let call = &all[0];
    assert_eq!(call.kind, SpanKind::Client);
    assert_eq!(text(call, "gen_ai.operation.name"), "chat");
    assert_eq!(text(call, "gen_ai.provider.name"), "script");
    assert_eq!(text(call, "gen_ai.request.model"), "default");
    // All of the input, and all of the output: thoughts and the cache included.
    assert_eq!(number(call, "gen_ai.usage.input_tokens"), 18);
    assert_eq!(number(call, "gen_ai.usage.cache_read.input_tokens"), 11);
    assert_eq!(number(call, "gen_ai.usage.output_tokens"), 5);
    assert_eq!(number(call, "gen_ai.usage.reasoning.output_tokens"), 3);
    let reasons = |reason: &str| Some(SpanValue::Texts(vec![reason.to_owned()]));
    assert_eq!(call.attribute("gen_ai.response.finish_reasons").cloned(), reasons("tool-calls"));
    assert_eq!(all[3].attribute("gen_ai.response.finish_reasons").cloned(), reasons("stop"));
    assert_eq!(text(&all[1], "attache.permission.action"), "allow");
    assert_eq!(text(&all[1], "gen_ai.tool.call.id"), "l");
    assert_eq!(text(&all[2], "gen_ai.operation.name"), "execute_tool");
    assert_eq!(text(&all[2], "gen_ai.tool.name"), "look");
    assert_eq!(text(&all[4], "attache.run.end"), "finished");
    assert_eq!(text(&all[5], "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(text(&all[5], "gen_ai.agent.name"), "build");
    assert!(!format!("{all:?}").contains("canary"), "nothing that anybody said: {all:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_measures_nothing_hangs_nothing_below_anything() {
    let world = World::new(LOOK);
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let requests = world.model.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.parent_span.is_none()));
}

#[tokio::test(start_paused = true)]
async fn content_is_there_where_it_is_wanted() {
    let spans = RecordedSpans::new(ContentPolicy::Sent);
    let world = measured(LOOK, &spans);
    let (_process, session) = world.session().await;
    say(&session, "canary").await;
    let all = spans.all();
    let content = |span: &FinishedSpan, key: &str| match span.attribute(key) {
        Some(SpanValue::Content(content)) => content.to_string(),
        other => panic!("{key} of {} is {other:?}", span.name),
    };
    assert!(content(&all[0], "gen_ai.input.messages").contains("\"content\":\"canary\""), "{all:#?}");
    assert!(content(&all[0], "gen_ai.output.messages").contains("tool_call"));
    assert!(!content(&all[0], "gen_ai.system_instructions").is_empty());
    assert!(content(&all[2], "gen_ai.tool.call.arguments").contains("canary"));
    assert!(!content(&all[2], "gen_ai.tool.call.result").is_empty());
    let asked = content(&all[3], "gen_ai.input.messages");
    assert!(asked.contains("tool_call_response") && asked.contains("\"id\":\"l\""), "{asked}");
    assert!(content(&all[3], "gen_ai.output.messages").contains("canary done"));
}

#[tokio::test(start_paused = true)]
async fn what_fails_says_what_kind_of_failure_it_was() {
    let script = "on \"try\"\n error transient \"canary\" times=1\n text \"x\"\non \"auth\"\n error auth \"canary\"\n\
                  on \"calls\"\n call id=u read_canary {\"path\":\"a\"}\n call id=b boom {\"path\":\"a\"}\n ---\n text \"x\"";
    let spans = withheld();
    let world = measured(script, &spans).with_settings(|settings| settings.people = People::Absent);
    let (_process, session) = world.session().await;
    say(&session, "try").await;
    let tries = spans.named("chat default");
    assert_eq!(text(&tries[0], "error.type"), "transient");
    assert_eq!(tries[0].status, SpanStatus::Failed { words: None });
    assert_eq!(tries[1].status, SpanStatus::Unset);
    check_connected(&spans.all());
    say(&session, "auth").await;
    let turn = spans.named("session.turn").pop().unwrap();
    assert_eq!((text(&turn, "error.type"), text(&turn, "attache.turn.end")), ("auth", "failed"));
    say(&session, "calls").await;
    let calls = spans.named("tool.call");
    let failures: Vec<_> =
        calls.iter().map(|call| (text(call, "gen_ai.tool.call.id"), text(call, "error.type"))).collect();
    assert!(failures.contains(&("u", "invalid_arguments")), "{failures:?}");
    assert!(failures.iter().any(|(id, _)| *id == "b"), "{failures:?}");
    let unknown = calls.iter().find(|call| text(call, "gen_ai.tool.call.id") == "u").unwrap();
    assert_eq!(text(unknown, "gen_ai.tool.name"), "unknown", "what a model made up is content");
    assert!(!format!("{:?}", spans.all()).contains("canary"));
}

#[tokio::test(start_paused = true)]
async fn nobody_to_ask_is_told_as_a_denied_call() {
    let spans = withheld();
    let world = measured(TOUCH, &spans).with_settings(|settings| settings.people = People::Absent);
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    check_connected(&spans.all());
    assert_eq!(text(&one(&spans, "permission.evaluate"), "attache.permission.action"), "ask");
    assert_eq!(text(&one(&spans, "tool.call"), "error.type"), "permission_denied");
}

/// The wait for a person is the permission's, not the tool's.
#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_a_person_has_two_runs_in_one_trace() {
    for (answer, action, failure) in
        [(Answer::AllowOnce, "allow", None), (Answer::RejectOnce, "deny", Some("permission_denied"))]
    {
        let spans = withheld();
        let world = measured(TOUCH, &spans);
        let (_process, session) = world.session().await;
        let client = PlannedClient::new([(Duration::from_secs(60), answer)]);
        let _participant = join(&session, client).await;
        say(&session, "go").await;
        let all = spans.all();
        check_connected(&all);
        assert_eq!(
            tree(&all),
            [
                "chat default < session.run",
                "session.run < session.turn",
                "permission.evaluate < session.turn",
                "tool.call < session.run",
                "chat default < session.run",
                "session.run < session.turn",
                "session.turn",
            ]
        );
        assert_eq!(text(&all[1], "attache.run.end"), "suspended");
        assert_eq!(text(&all[2], "attache.permission.action"), action);
        assert_eq!(text(&all[2], "attache.permission.by"), "person");
        let took = |span: &FinishedSpan| span.ended_at - span.started_at;
        assert!(took(&all[2]) >= 60_000 && took(&all[3]) < 1_000, "{all:#?}");
        assert_eq!(all[3].attribute("error.type"), failure.map(SpanValue::from).as_ref());
        assert_ne!(all[1].context.span_id, all[5].context.span_id);
    }
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_with_the_trace_of_a_turn() {
    let spans = withheld();
    let world = measured(TOUCH, &spans);
    let (process, session) = world.session().await;
    let _ticket = session.prompt(prompt("go"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    let before = spans.all();
    assert_eq!(tree(&before), ["chat default < session.run", "session.run < nobody"]);
    let id = session.id().clone();
    pause(5_000).await;
    process.kill();
    let next = world.process();
    let session = next.hub.open(&id).await.unwrap();
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    until(&session, |state| *state == RunState::Idle).await;
    let all = spans.all();
    check_connected(&all);
    assert_eq!(all.len(), 7, "{:#?}", tree(&all));
    let turn = one(&spans, "session.turn");
    assert!(turn.started_at <= before[0].started_at && turn.ended_at - turn.started_at >= 5_000, "{turn:?}");
    assert_eq!(text(&turn, "gen_ai.agent.name"), "build");
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_process_that_was_killed_is_told_by_the_next() {
    let spans = withheld();
    let world = measured("on *\n stream 1000 \"word \" every 10ms", &spans);
    let (process, session) = world.session().await;
    let started = session.attach(None, AttachFrom::Now).await.unwrap();
    let _ticket = session.prompt(prompt("go"));
    pause(500).await;
    let id = session.id().clone();
    drop(started);
    process.kill();
    // What the dead process told by being dropped is not of interest here.
    let _session = world.process().hub.open(&id).await.unwrap();
    let turn = one(&spans, "session.turn");
    assert_eq!(text(&turn, "attache.turn.end"), "aborted");
    assert!(turn.ended_at - turn.started_at >= 400, "{turn:?}");
    let message = world.disk.lock().unwrap().conversation(&id).last().unwrap().id.clone();
    assert_eq!(turn.context, SpanContext::of_turn(&message));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_is_no_error_but_what_it_stopped_is_marked() {
    let spans = withheld();
    let world = measured("on *\n call id=h hang {\"path\":\"a\"}", &spans);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    let ticket = session.prompt(prompt("go"));
    while world.runs.of("h") == 0 {
        pause(1).await;
    }
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    check_connected(&spans.all());
    let turn = one(&spans, "session.turn");
    assert_eq!((text(&turn, "attache.turn.end"), &turn.status), ("aborted", &SpanStatus::Unset));
    assert_eq!(text(&one(&spans, "tool.call"), "error.type"), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn the_call_for_a_title_hangs_below_the_turn_that_it_is_made_of() {
    let spans = withheld();
    let mut providers = Providers::new();
    providers.insert("script", Arc::new(ScriptModel::parse("script", "on *\n text \"x\"").unwrap()));
    let small = "model mini\non *\n delay 20ms\n text \"A title\"\n usage input=5 output=5";
    providers.insert("small", Arc::new(ScriptModel::parse("small", small).unwrap()));
    let mini = Some(ModelRef::new("small", "mini"));
    let world = World::with_model(Arc::new(providers))
        .with_telemetry(spans.clone())
        .with_settings(|settings| settings.small_model = mini);
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    pause(1_000).await;
    let (turn, title) = (one(&spans, "session.turn"), one(&spans, "chat mini"));
    assert_eq!((title.context.trace_id, title.parent), (turn.context.trace_id, Some(turn.context.span_id)));
    assert_eq!(text(&title, "gen_ai.provider.name"), "small");
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_a_span_with_the_calls_of_its_model_below_it() {
    let spans = withheld();
    let script =
        "on \"go\"\n text \"a long answer\"\non *\n usage input=9 output=4\n text \"## Goal\\nwork\"";
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start());
    let telemetry: Arc<dyn Telemetry> = spans.clone();
    let model = Arc::new(ScriptModel::parse("script", script).unwrap());
    let ids = Arc::new(Ids::new(clock.clone(), 99));
    let own = TracedModel::new(model.clone(), telemetry, clock, ids);
    let blobs = Arc::new(MemoryStore::open(Arc::default(), 7, 7));
    let compactor = Compactor { model: Arc::new(own), blobs, small_model: None };
    let world = World::with_model(model).with_telemetry(spans.clone()).with_compaction(Arc::new(compactor));
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let before = spans.all().len();
    assert_eq!(say(&session, "/compact").await, TurnEnd::Finished(FinishReason::Stop));
    let all = spans.all().split_off(before);
    check_connected(&all);
    assert_eq!(
        tree(&all),
        [
            "chat default < compaction.run",
            "compaction.run < session.run",
            "session.run < session.turn",
            "session.turn"
        ]
    );
    assert_eq!(text(&all[1], "attache.compaction.occasion"), "command");
    assert_eq!(text(&all[1], "attache.compaction.kind"), "summary");
    assert_eq!(text(&all[1], "attache.compaction.outcome"), "made");
    assert!(number(&all[1], "attache.compaction.tokens_before") > 0);
}

/// A subagent's turn is a trace of its own, which says for which call it works.
#[tokio::test(start_paused = true)]
async fn the_turns_of_a_subagent_name_the_call_that_they_work_for() {
    let script = "on \"go\"\n call id=one task {\"subagent_type\":\"explore\",\"prompt\":\"job\"}\n \
                  call id=two task {\"subagent_type\":\"explore\",\"prompt\":\"deep\",\"background\":true}\n ---\n text \"done\"\n\
                  on *\n text \"fine\"";
    let spans = withheld();
    let world = measured(script, &spans);
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    while spans.named("session.turn").len() < 3 {
        pause(10).await;
    }
    let of_parent = |span: &&FinishedSpan| text(span, "gen_ai.conversation.id") == session.id().as_str();
    let turns = spans.named("session.turn");
    let calls = spans.named("tool.call");
    assert!(turns.iter().filter(of_parent).all(|turn| turn.links.is_empty()), "{turns:#?}");
    let mut linked: Vec<SpanContext> = turns.iter().flat_map(|turn| turn.links.clone()).collect();
    let mut made: Vec<SpanContext> = calls.iter().filter(of_parent).map(|call| call.context).collect();
    linked.sort_by_key(|context| context.span_id.to_string());
    made.sort_by_key(|context| context.span_id.to_string());
    assert_eq!((made.len(), &linked), (2, &made), "{turns:#?}");
}
