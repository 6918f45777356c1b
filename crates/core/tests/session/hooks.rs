//! Hooks: at each of their moments they pass, block, fail, hang and are cancelled. None makes anything looser
//! than it was judged, and none is passed over after a crash.

use std::sync::Arc;
use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::hooks::{Hook, HookOwner};
use attache_core::hub::{HubError, People, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::notice;
use attache_core::part::{Part, Role, ToolPart, ToolState};
use attache_core::ports::client::Answer;
use attache_core::ports::hooks::HookEnd;
use attache_core::prompt::{Prompt, PromptSource};
use attache_core::turn::TurnEnd;
use attache_core::watchdog::{Action, Approval, Reason, Rule, Verdict};
use attache_testkit::fakes::hooks::{hook, hook_for};
use serde_json::{Value, json};

use crate::making_room::{self, Worker, is_finished};
use crate::world::*;

const LOOK: &str = "on *\n call id=l look {\"path\":\"a\"}\n ---\n text \"done\"";
const TOUCH: &str = "on *\n call id=t touch {\"path\":\"a\"}\n ---\n text \"done\"";
const TALK: &str = "on *\n text \"one\"\n ---\n text \"two\"\n ---\n text \"three\"";

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

fn kept(world: &World, session: &SessionId) -> Vec<String> {
    let notice = |part: &Part| match part {
        Part::Data { name, data, .. } if name == "notice" => Some(notice::line(data)),
        _ => None,
    };
    world.answers(session).concat().iter().filter_map(notice).collect()
}

fn only_call(world: &World, session: &SessionId) -> ToolPart {
    let mut calls = tools_of(&world.answers(session)[0]);
    assert_eq!(calls.len(), 1);
    calls.remove(0)
}

fn decision(call: &ToolPart) -> Verdict {
    let shown = call.tool_metadata.as_ref().unwrap();
    serde_json::from_value(shown["attache"]["decision"].clone()).unwrap()
}

/// What hooks were run with, by their commands.
fn ran(world: &World) -> Vec<String> {
    world.hooks.ran().into_iter().map(|(command, _)| command).collect()
}

fn told(world: &World) -> Value {
    world.hooks.ran().last().unwrap().1.clone()
}

/// One turn with one hook.
async fn turn(script: &str, hook: Hook) -> (World, SessionHandle, TurnEnd) {
    let world = World::new(script).with_hooks([hook]);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::AllowOnce, Answer::AllowOnce])).await;
    let end = say(&session, "go").await;
    world.check_rest(session.id());
    (world, session, end)
}

/// The same, cancelled while the hook hangs. It is over in half a second.
async fn cancelled_turn(script: &str, hook: Hook) -> (World, SessionHandle) {
    let world = World::new(script).with_hooks([hook]);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[])).await;
    let ticket = session.prompt(prompt("go"));
    while world.hooks.ran().is_empty() {
        pause(1).await;
    }
    session.cancel();
    let since = tokio::time::Instant::now();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert!(since.elapsed() <= Duration::from_millis(500), "{:?}", since.elapsed());
    world.check_rest(session.id());
    (world, session)
}

// before-tool

#[tokio::test(start_paused = true)]
async fn before_a_call_a_hook_sees_it_and_lets_it_pass() {
    let (world, session, end) = turn(LOOK, hook("before-tool", "pass")).await;
    assert_eq!((end, world.runs.of("l")), (finished(), 1));
    assert_eq!(only_call(&world, session.id()).output, Some("look done".into()));
    assert_eq!(kept(&world, session.id()), [""; 0]);
    let told = told(&world);
    assert_eq!(told["hook_event_name"], "before-tool");
    assert_eq!((&told["tool_name"], &told["tool_input"]), (&json!("look"), &json!({ "path": "a" })));
    assert_eq!((&told["cwd"], &told["tool_use_id"]), (&json!("/w"), &json!("l")));
    assert_eq!(told["session_id"], json!(session.id()));
    assert_eq!(told["permission_mode"], "default");
}

#[tokio::test(start_paused = true)]
async fn before_a_call_a_hook_blocks_and_the_model_is_told_why() {
    for touch in [LOOK, TOUCH] {
        let (world, session, end) = turn(touch, hook("before-tool", "block not on a Friday.")).await;
        assert_eq!(end, finished());
        assert!(world.runs.all().is_empty(), "it did not run");
        let call = only_call(&world, session.id());
        assert_eq!(call.state, ToolState::OutputError);
        let error = call.error_text.clone().unwrap();
        assert!(error.starts_with("denied by a hook: not on a Friday"), "{error}");
        let (hook, why) = ("block not on a Friday.".to_owned(), "not on a Friday.".to_owned());
        assert_eq!(decision(&call), Verdict { action: Action::Deny, reason: Reason::Hook { hook, why } });
        assert_eq!(world.model.requests().len(), 2, "the model goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_is_told_once_and_the_call_runs() {
    let script =
        "on *\n call id=l look {\"path\":\"a\"}\n call id=m look {\"path\":\"b\"}\n ---\n text \"done\"";
    let (world, session, end) = turn(script, hook("before-tool", "fail no python")).await;
    assert_eq!((end, world.runs.of("l"), world.runs.of("m")), (finished(), 1, 1));
    assert_eq!(ran(&world).len(), 2);
    let notices = kept(&world, session.id());
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(
        notices[0],
        "warning: A hook failed (before-tool): `fail no python`: it ended with exit code 1: no python"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_is_given_up_and_the_call_runs() {
    let (world, session, end) = turn(LOOK, hook("before-tool", "hang")).await;
    assert_eq!((end, world.runs.of("l")), (finished(), 1));
    assert_eq!(world.hooks.ended(), [HookEnd::TimedOut(Duration::from_secs(10))]);
    let notices = kept(&world, session.id());
    assert!(notices[0].contains("it took longer than 10 s and was killed"), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_hook_before_a_call_and_nothing_runs() {
    for command in ["hang", "deaf"] {
        let (world, session) = cancelled_turn(LOOK, hook("before-tool", command)).await;
        assert!(world.runs.all().is_empty());
        assert_eq!(only_call(&world, session.id()).state, ToolState::OutputError);
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_the_matcher_names_is_shown_to_a_hook() {
    for (matcher, runs) in [("touch", 0), ("look|touch", 1), ("look a", 1), ("look b", 0), ("lo*", 1)] {
        let (world, _, _) = turn(LOOK, hook_for("before-tool", matcher, "pass")).await;
        assert_eq!(ran(&world).len(), runs, "{matcher}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_that_blocks_is_the_last_that_is_asked() {
    let world = World::new(LOOK).with_hooks([
        hook("before-tool", "pass"),
        hook("before-tool", "block no"),
        hook("before-tool", "fail never"),
    ]);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, finished());
    assert_eq!(ran(&world), ["pass", "block no"]);
}

const ALLOW: &str = "print {\"hookSpecificOutput\":{\"permissionDecision\":\"allow\"}}";
const ASK: &str = "print {\"hookSpecificOutput\":{\"permissionDecision\":\"ask\"}}";

#[tokio::test(start_paused = true)]
async fn the_users_own_hook_may_spare_a_question() {
    for event in ["before-tool", "permission"] {
        let world = World::new(TOUCH).with_hooks([hook(event, ALLOW)]);
        let (_process, session) = world.session().await;
        let client = answering(&[]);
        let _participant = join(&session, client.clone()).await;
        assert_eq!(say(&session, "go").await, finished());
        assert_eq!((world.runs.of("t"), client.asked().len()), (1, 0), "{event}");
        let call = only_call(&world, session.id());
        assert_eq!(decision(&call).action, Action::Allow);
        assert!(matches!(decision(&call).reason, Reason::Hook { .. }));
        world.check_rest(session.id());
    }
}

/// A project's hook, a rule that asks or denies, what lies outside, and a hook that wants the question: the
/// word "allow" changes nothing.
#[tokio::test(start_paused = true)]
async fn a_hook_makes_nothing_looser_than_it_was_judged() {
    let outside = "on *\n call id=t touch {\"path\":\"/elsewhere/a\"}\n ---\n text \"done\"";
    let rule = |action| vec![Rule::new("edit", "a", action)];
    let of_project = || Hook { owner: HookOwner::Project, ..hook("before-tool", ALLOW) };
    let own = || hook("before-tool", ALLOW);
    let both = || vec![hook("before-tool", ASK), own(), hook("permission", ALLOW)];
    for (script, hooks, rules, asked, why) in [
        (TOUCH, vec![of_project()], vec![], 1, "a project's"),
        (TOUCH, vec![own()], rule(Action::Ask), 1, "a rule asks"),
        (TOUCH, vec![own()], rule(Action::Deny), 0, "a rule denies"),
        (outside, vec![own()], vec![], 1, "it lies outside"),
        (TOUCH, both(), vec![], 1, "another wants it"),
    ] {
        let world =
            World::new(script).with_hooks(hooks).with_settings(|settings| settings.rules = rules.into());
        let (_process, session) = world.session().await;
        let client = answering(&[Answer::RejectOnce]);
        let _participant = join(&session, client.clone()).await;
        assert_eq!(say(&session, "go").await, finished());
        assert_eq!((world.runs.of("t"), client.asked().len()), (0, asked), "{why}");
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_want_a_question_where_none_was_needed() {
    let world = World::new(LOOK).with_hooks([Hook { owner: HookOwner::Project, ..hook("before-tool", ASK) }]);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::AllowOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, finished());
    assert_eq!((world.runs.of("l"), client.asked().len()), (1, 1));
    world.check_rest(session.id());

    let headless = World::new(LOOK).with_hooks([hook("before-tool", ASK)]);
    let headless = headless.with_settings(|settings| settings.people = People::Absent);
    let (_process, session) = headless.session().await;
    assert_eq!(say(&session, "go").await, finished());
    assert!(headless.runs.all().is_empty(), "there is nobody to ask");
    // The user's own hook answers in the place of a person, where nothing else was said.
    for (hook, runs) in [(hook("before-tool", ALLOW), 1), (hook("before-tool", "pass"), 0)] {
        let headless = World::new(TOUCH).with_hooks([hook]);
        let headless = headless.with_settings(|settings| settings.people = People::Absent);
        let (_process, session) = headless.session().await;
        assert_eq!(say(&session, "go").await, finished());
        assert_eq!(headless.runs.of("t"), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_adds_is_told_with_the_result() {
    let context = "print {\"hookSpecificOutput\":{\"additionalContext\":\"the file is generated\"}}";
    for event in ["before-tool", "after-tool"] {
        let (world, session, _) = turn(LOOK, hook(event, context)).await;
        let output = only_call(&world, session.id()).output.unwrap();
        assert_eq!(output, "look done\n\nA hook says: the file is generated", "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_wants_other_arguments_does_not_get_these() {
    let other = "print {\"hookSpecificOutput\":{\"permissionDecision\":\"allow\",\"updatedInput\":{}}}";
    let (world, session, _) = turn(LOOK, hook("before-tool", other)).await;
    assert!(world.runs.all().is_empty());
    assert!(only_call(&world, session.id()).error_text.unwrap().contains("`updatedInput`"));
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_end_the_turn() {
    let stop = "print {\"continue\":false,\"stopReason\":\"the budget is used up\"}";
    for (event, runs) in [("before-tool", 0), ("after-tool", 1)] {
        let (world, session, end) = turn(LOOK, hook(event, stop)).await;
        assert_eq!((end, world.runs.of("l")), (finished(), runs));
        assert_eq!(world.model.requests().len(), 1, "{event}: the model is not asked again");
        let notices = kept(&world, session.id());
        assert!(notices[0].contains("A hook ended the turn") && notices[0].contains("budget"), "{notices:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn people_are_told_what_a_hook_says_to_them() {
    let (world, session, _) = turn(LOOK, hook("before-tool", "print {\"systemMessage\":\"checked\"}")).await;
    let notices = kept(&world, session.id());
    assert!(notices[0].starts_with("info: A hook says") && notices[0].ends_with("checked"), "{notices:?}");
}

// after-tool

#[tokio::test(start_paused = true)]
async fn after_a_call_a_hook_sees_its_result() {
    let (world, session, end) = turn(LOOK, hook("after-tool", "pass")).await;
    assert_eq!(end, finished());
    assert_eq!(only_call(&world, session.id()).output, Some("look done".into()));
    let told = told(&world);
    assert_eq!((&told["tool_response"], &told["succeeded"]), (&json!("look done"), &json!(true)));
    let (world, ..) = turn(LOOK, hook("PostToolUse", "pass")).await;
    assert_eq!(world.hooks.ran()[0].1["tool_response"], json!({ "success": true, "output": "look done" }));
}

#[tokio::test(start_paused = true)]
async fn after_a_call_a_hook_objects_and_the_model_gets_that_with_the_result() {
    let (world, session, end) = turn(LOOK, hook("after-tool", "block two lints")).await;
    assert_eq!((end, world.runs.of("l")), (finished(), 1));
    let call = only_call(&world, session.id());
    assert_eq!(call.state, ToolState::OutputAvailable);
    assert_eq!(call.output.unwrap(), "look done\n\nA hook says: two lints");
    let notices = kept(&world, session.id());
    assert_eq!(notices, ["warning: A hook objects to what look did: `block two lints`: two lints"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_call_a_hook_that_fails_or_hangs_leaves_the_result_as_it_is() {
    for command in ["fail oh", "hang", "nonsense"] {
        let (world, session, end) = turn(LOOK, hook("after-tool", command)).await;
        assert_eq!(end, finished());
        assert_eq!(only_call(&world, session.id()).output, Some("look done".into()), "{command}");
        let notices = kept(&world, session.id());
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].starts_with("warning: A hook failed (after-tool)"), "{notices:?}");
    }
}

/// What it did is known: it is told as it is.
#[tokio::test(start_paused = true)]
async fn a_cancel_after_a_call_keeps_its_result() {
    for command in ["hang", "deaf"] {
        let (world, session) = cancelled_turn(LOOK, hook("after-tool", command)).await;
        assert_eq!(world.runs.of("l"), 1);
        assert_eq!(only_call(&world, session.id()).output, Some("look done".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_refused_has_no_hook_after_it() {
    let world = World::new(LOOK).with_hooks([hook("before-tool", "block no"), hook("after-tool", "pass")]);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, finished());
    assert_eq!(ran(&world), ["block no"]);
}

// prompt

#[tokio::test(start_paused = true)]
async fn a_hook_sees_a_prompt_before_it_is_stored() {
    let (world, session, end) = turn(TALK, hook("prompt", "pass")).await;
    assert_eq!(end, finished());
    let told = told(&world);
    assert_eq!((&told["hook_event_name"], &told["prompt"]), (&json!("prompt"), &json!("go")));
    assert_eq!(world.prompts(session.id()), ["go"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_a_hook_is_against_is_refused_and_leaves_nothing() {
    let world = World::new(TALK).with_hooks([hook("prompt", "block it holds a key")]);
    let (_process, session) = world.session().await;
    let refused = answer(session.prompt(prompt_with_id("my key is 1234", "msg_p"))).await;
    let text = "a hook refused this prompt: it holds a key".to_owned();
    assert_eq!(refused, Err(HubError::Invalid(text)));
    assert_eq!(world.prompts(session.id()), [""; 0]);
    assert!(world.model.requests().is_empty());
    assert!(!format!("{:?}", world.disk.lock().unwrap()).contains("1234"), "nothing of it is stored");
    world.check_rest(session.id());
}

/// Another agent's prompt is no command, and is looked at like a person's.
#[tokio::test(start_paused = true)]
async fn a_prompt_of_another_agent_meets_the_same_hooks_and_is_never_a_command() {
    let of_agent = |text: &str| Prompt { source: PromptSource::OtherAgent, ..prompt(text) };
    let world = World::new(TALK).with_hooks([hook("prompt", "block it holds a key")]);
    let (_process, session) = world.session().await;
    let refused = answer(session.prompt(of_agent("my key is 1234"))).await;
    assert_eq!(refused, Err(HubError::Invalid("a hook refused this prompt: it holds a key".to_owned())));
    let world = World::new(TALK);
    let (_process, session) = world.session().await;
    let outcome = answer(session.prompt(of_agent("/mode plan"))).await.unwrap();
    assert_eq!(outcome.end, finished());
    assert_eq!(world.prompts(session.id()), ["/mode plan"]);
    assert_eq!(world.model.requests().len(), 1, "a model answers it");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_prompt_hook_that_fails_or_hangs_is_told_and_the_prompt_goes_on() {
    for command in ["fail oh", "hang"] {
        let world = World::new(TALK).with_hooks([hook("prompt", command)]);
        let (_process, session) = world.session().await;
        let (shown, _reader) = read(join(&session, answering(&[])).await);
        assert_eq!(say(&session, "go").await, finished());
        pause(10).await;
        assert_eq!(notices(&shown), ["A hook failed (prompt)"], "{command}");
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_takes_back_a_prompt_whose_hook_hangs() {
    for command in ["hang", "deaf"] {
        let (world, session) = cancelled_turn(TALK, hook("prompt", command)).await;
        assert_eq!(world.prompts(session.id()), [""; 0]);
        assert!(world.model.requests().is_empty());
    }
}

/// Status is answered, a second prompt waits in its order.
#[tokio::test(start_paused = true)]
async fn a_session_is_there_while_a_prompt_hook_works() {
    let world = World::new(TALK).with_hooks([hook("prompt", "hang")]);
    let (_process, session) = world.session().await;
    let (one, two) = (session.prompt(prompt("one")), session.prompt(prompt("two")));
    pause(1_000).await;
    let asked = tokio::time::timeout(Duration::from_millis(100), session.status()).await;
    assert!(asked.is_ok_and(|status| status.is_ok()));
    assert_eq!((end_of(one).await, end_of(two).await), (finished(), finished()));
    assert_eq!(world.prompts(session.id()), ["one", "two"]);
    world.check_rest(session.id());
}

/// The model is sent it with the prompt, live and after a restart; a client that sends the prompt again sends
/// the same prompt.
#[tokio::test(start_paused = true)]
async fn what_a_prompt_hook_prints_is_for_the_model() {
    let world = World::new(TALK).with_hooks([hook("UserPromptSubmit", "print the branch is frozen")]);
    let (process, session) = world.session().await;
    assert_eq!(end_of(session.prompt(prompt_with_id("go", "msg_p"))).await, finished());
    let live = world.model.requests().last().unwrap().passages.clone();
    let word = Part::Data {
        name: "hook".into(),
        id: None,
        data: json!({ "event": "prompt", "hook": "print the branch is frozen", "text": "the branch is frozen" }),
    };
    assert!(live[0].parts.contains(&word), "{:?}", live[0].parts);
    assert_eq!(world.prompts(session.id()), ["go"], "it is no word of the user");
    assert_eq!(end_of(session.prompt(prompt_with_id("go", "msg_p"))).await, finished());
    assert_eq!(ran(&world).len(), 1, "the same prompt is the same prompt");
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "more").await, finished());
    assert!(world.model.requests().last().unwrap().passages[0].parts.contains(&word));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_no_model_is_sent_is_no_prompt() {
    let world = World::new(TALK).with_hooks([hook("prompt", "block no")]);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "/help").await, finished());
    assert!(ran(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_waiting_prompt_is_shown_to_hooks_too() {
    let script = "on *\n delay 60s\n text \"late\"";
    let world = World::new(script).with_hooks([hook("prompt", "once pass")]);
    let (process, session) = world.session().await;
    let _first = session.prompt(prompt("one"));
    until(&session, |state| !matches!(state, attache_core::events::RunState::Idle)).await;
    let second = session.prompt(prompt_with_id("two", "msg_two"));
    second.accepted.await.unwrap();
    let id = attache_core::ids::MessageId::new("msg_two");
    session.edit_queued(id.clone(), prompt("three")).await.unwrap();
    assert_eq!(
        world.hooks.ran().iter().map(|(_, told)| told["prompt"].clone()).collect::<Vec<_>>(),
        ["one", "two", "three"]
    );
    let session_id = session.id().clone();
    process.kill();
    // Nobody could show it to them while the session is not open.
    let refused = world.process().hub.find(&session_id).await.unwrap().edit_queued(id, prompt("four")).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("prompt hooks")));
}

// turn-end

#[tokio::test(start_paused = true)]
async fn at_the_end_of_a_turn_a_hook_lets_it_end() {
    let (world, _, end) = turn(TALK, hook("turn-end", "pass")).await;
    assert_eq!((end, world.model.requests().len()), (finished(), 1));
    let told = told(&world);
    assert_eq!((&told["stop_hook_active"], &told["last_assistant_message"]), (&json!(false), &json!("one")));
}

/// The model is told in a step of its own, and the same again after a restart.
#[tokio::test(start_paused = true)]
async fn at_the_end_of_a_turn_a_hook_sends_the_model_back() {
    let world = World::new(TALK).with_hooks([hook("Stop", "once block the tests fail")]);
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, finished());
    assert_eq!(text_of(&world.answers(session.id())[0]), "onetwo");
    let active: Vec<_> = world.hooks.ran().iter().map(|(_, told)| told["stop_hook_active"].clone()).collect();
    assert_eq!(active, [false, true]);
    let live = world.model.requests().last().unwrap().passages.clone();
    assert_eq!(
        live.iter().map(|passage| passage.role).collect::<Vec<_>>(),
        [Role::User, Role::Assistant, Role::System]
    );
    let Part::Data { name, data, .. } = &live[2].parts[0] else { panic!("{:?}", live[2].parts) };
    assert_eq!((name.as_str(), &data["text"]), ("hook", &json!("the tests fail")));
    world.check_rest(session.id());
    let (id, spoken) = (session.id().clone(), say(&session, "more").await);
    assert_eq!(spoken, finished());
    let kept = world.model.requests().last().unwrap().passages.clone();
    assert_eq!(kept[..3], live[..]);
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "again").await, finished());
    assert_eq!(world.model.requests().last().unwrap().passages[..kept.len()], kept[..], "load is as live");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_never_content_is_not_heard_for_ever() {
    let (world, session, end) = turn("on *\n text \"x\"\n", hook("turn-end", "block again")).await;
    assert_eq!(end, finished());
    assert_eq!(world.model.requests().len(), 6);
    let notices = kept(&world, session.id());
    assert!(notices.last().unwrap().contains("although a hook was against it 5 times"), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_a_turn_a_hook_that_fails_or_hangs_lets_it_end() {
    for command in ["fail oh", "hang"] {
        let (world, session, end) = turn(TALK, hook("turn-end", command)).await;
        assert_eq!((end, world.model.requests().len()), (finished(), 1), "{command}");
        assert!(kept(&world, session.id())[0].contains("A hook failed (turn-end)"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_hook_at_the_end_of_a_turn() {
    for command in ["hang", "deaf"] {
        let (world, session) = cancelled_turn(TALK, hook("turn-end", command)).await;
        assert_eq!(text_of(&world.answers(session.id())[0]), "one");
    }
}

/// A `turn-end` is the end of the turn that people wait for, once; a subagent's has its own name.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_subagent_is_a_moment_of_its_own() {
    const READER: &str = "---\nmode: subagent\ndescription: Looks.\nread_only: true\n---\nYou look.";
    let script = "on \"go\"\n call id=t task {\"subagent_type\":\"reader\",\"prompt\":\"job\"}\n ---\n text \"done\"\n\
                  on \"job\"\n text \"one\"\n ---\n text \"two\"";
    let world = World::new(script).with_agents(&[("reader", READER)]).with_hooks([
        hook("turn-end", "pass"),
        hook_for("subagent-end", "other", "block never asked"),
        hook_for("SubagentStop", "read*", "once block look again"),
    ]);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, finished());
    assert_eq!(ran(&world), ["once block look again", "once block look again", "pass"]);
    let told: Vec<_> = world.hooks.ran().into_iter().map(|(_, told)| told).collect();
    let names = ["SubagentStop", "SubagentStop", "turn-end"];
    assert_eq!(told.iter().map(|told| told["hook_event_name"].clone()).collect::<Vec<_>>(), names);
    assert_eq!(
        (&told[1]["agent_type"], &told[1]["last_assistant_message"]),
        (&json!("reader"), &json!("two"))
    );
    assert_ne!(told[1]["session_id"], told[2]["session_id"]);
    let result = only_call(&world, session.id()).output.unwrap();
    assert_eq!(result, "two");
    world.check_rest(session.id());
}

// permission

#[tokio::test(start_paused = true)]
async fn before_a_person_is_asked_a_hook_is_told() {
    let (world, _, end) = turn(TOUCH, hook("Notification", "pass")).await;
    assert_eq!((end, world.runs.of("t")), (finished(), 1));
    let told = told(&world);
    assert_eq!(told["hook_event_name"], "Notification");
    assert_eq!(told["message"], "attache needs your permission to use touch: it changes a file");
    let (world, ..) = turn(LOOK, hook("permission", "pass")).await;
    assert!(ran(&world).is_empty(), "nobody was asked");
}

#[tokio::test(start_paused = true)]
async fn before_a_person_is_asked_a_hook_denies() {
    let world = World::new(TOUCH).with_hooks([hook("permission", "block out of hours")]);
    let (_process, session) = world.session().await;
    let client = answering(&[]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, finished());
    assert_eq!((world.runs.of("t"), client.asked().len()), (0, 0));
    let error = only_call(&world, session.id()).error_text.unwrap();
    assert_eq!(error, "denied by a hook: out of hours. Nothing was changed");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn before_a_person_is_asked_a_hook_that_fails_or_hangs_leaves_the_question() {
    for command in ["fail oh", "hang"] {
        let (world, session, end) = turn(TOUCH, hook("permission", command)).await;
        assert_eq!((end, world.runs.of("t")), (finished(), 1), "{command}");
        assert!(kept(&world, session.id())[0].contains("A hook failed (permission)"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_hook_before_a_question_and_nobody_is_asked() {
    for command in ["hang", "deaf"] {
        let (world, session) = cancelled_turn(TOUCH, hook("permission", command)).await;
        assert!(world.runs.all().is_empty());
        assert_eq!(only_call(&world, session.id()).state, ToolState::OutputError);
    }
}

// compaction

async fn compacted(hooks: Vec<Hook>) -> (World, SessionHandle, TurnEnd) {
    let world = making_room::world(Worker::new(100_000, 1, 4_000)).with_hooks(hooks);
    let (_process, session) = world.session().await;
    assert!(is_finished(&say(&session, "first").await));
    let end = say(&session, "/compact the names").await;
    world.check_rest(session.id());
    (world, session, end)
}

#[tokio::test(start_paused = true)]
async fn before_a_summary_a_hook_is_told_who_wants_it() {
    let (world, session, end) = compacted(vec![hook("PreCompact", "pass")]).await;
    assert!(is_finished(&end));
    let told = told(&world);
    assert_eq!((&told["trigger"], &told["custom_instructions"]), (&json!("manual"), &json!("the names")));
    assert!(text_of(world.answers(session.id()).last().unwrap()).starts_with("Summarised"));
    let (world, ..) = compacted(vec![hook_for("compaction", "auto", "pass")]).await;
    assert!(ran(&world).is_empty(), "it is for another kind");
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_against_a_summary_that_the_user_wants() {
    let (world, session, end) = compacted(vec![hook("compaction", "block not yet")]).await;
    assert!(is_finished(&end));
    let answer = text_of(world.answers(session.id()).last().unwrap());
    assert_eq!(answer, "Not summarised, a hook is against it: not yet");
    assert!(making_room::marks(&world, &session).is_empty());
}

/// Without it the session could not go on.
#[tokio::test(start_paused = true)]
async fn a_summary_that_has_to_be_made_is_made_against_a_hook() {
    let world =
        making_room::world(Worker::new(9_000, 1, 4_000)).with_hooks([hook("compaction", "block not yet")]);
    let (_process, session) = world.session().await;
    for turn in 0..12 {
        assert!(is_finished(&say(&session, &format!("turn {turn}: {}", "word ".repeat(300))).await));
    }
    assert!(making_room::marks(&world, &session).iter().any(|mark| mark["status"] == "completed"));
    assert_eq!(told(&world)["trigger"], "auto");
    let notices = kept(&world, session.id());
    assert!(notices.iter().any(|notice| notice.contains("which has to be made")), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn before_a_summary_a_hook_that_fails_or_hangs_is_told_and_it_is_made() {
    for command in ["fail oh", "hang"] {
        let (world, session, end) = compacted(vec![hook("compaction", command)]).await;
        assert!(is_finished(&end));
        assert!(text_of(world.answers(session.id()).last().unwrap()).starts_with("Summarised"), "{command}");
        assert!(kept(&world, session.id())[0].contains("A hook failed (compaction)"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_hook_before_a_summary() {
    let world = making_room::world(Worker::new(100_000, 1, 4_000)).with_hooks([hook("compaction", "hang")]);
    let (_process, session) = world.session().await;
    assert!(is_finished(&say(&session, "first").await));
    let ticket = session.prompt(prompt("/compact"));
    while world.hooks.ran().is_empty() {
        pause(1).await;
    }
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert!(making_room::marks(&world, &session).is_empty());
    world.check_rest(session.id());
}

// crashes

/// The question of an earlier process is answered here: its hooks are asked before the call runs.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_asked_about_before_a_crash_does_not_run_without_its_hook() {
    for (hooks, runs) in [(vec![hook("before-tool", "block no")], 0), (vec![hook("before-tool", "pass")], 1)]
    {
        let mut world = World::new(TOUCH);
        let (process, session) = world.session().await;
        let _participant = join(&session, answering(&[])).await;
        let _ticket = session.prompt(prompt("go"));
        until(&session, |state| *state == attache_core::events::RunState::WaitingOnApproval).await;
        let id = session.id().clone();
        process.kill();
        world = world.with_hooks(hooks);
        let session = world.process().hub.open(&id).await.unwrap();
        let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
        until(&session, |state| *state == attache_core::events::RunState::Idle).await;
        assert_eq!((ran(&world).len(), world.runs.of("t")), (1, runs));
        world.check_rest(&id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_a_hook_leads_to_no_call() {
    let world = World::new(TOUCH).with_hooks([hook("before-tool", "hang")]);
    let world = world.with_settings(|settings| settings.approval = Approval::Edits);
    let (process, session) = world.session().await;
    let _ticket = session.prompt(prompt("go"));
    while world.hooks.ran().is_empty() {
        pause(1).await;
    }
    pause(5).await;
    let id = session.id().clone();
    process.kill();
    let _session = world.process().hub.open(&id).await.unwrap();
    pause(20_000).await;
    assert!(world.runs.all().is_empty());
    let error = only_call(&world, &id).error_text.unwrap();
    assert!(error.contains("aborted by host restart"), "{error}");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn approval_all_is_no_way_around_a_hook() {
    let world = World::new(TOUCH).with_hooks([hook("PreToolUse", "block no")]);
    let world = world.with_settings(|settings| {
        settings.approval = Approval::All;
        settings.containment = attache_core::watchdog::Containment::ExplicitlyOff.into();
    });
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, finished());
    assert!(world.runs.all().is_empty());
    assert_eq!(told(&world)["permission_mode"], "bypassPermissions");
}

/// What a backend without hooks costs is what one without any costs: none is made ready.
#[tokio::test(start_paused = true)]
async fn without_a_hook_of_the_moment_nothing_is_run() {
    let world = World::new(TOUCH).with_hooks([hook("compaction", "block no")]);
    let (_process, session) = world.session().await;
    let client: Arc<_> = answering(&[Answer::AllowOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, finished());
    assert!(ran(&world).is_empty());
    assert_eq!((world.runs.of("t"), client.asked().len()), (1, 1));
}
