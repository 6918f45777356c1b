//! What people are told beside the conversation: kept with the answer, never sent to a model. And what a
//! provider would not take is left out of the next request, so that one prompt can't make a session useless.

use attache_core::chunk::FinishReason;
use attache_core::export::Format;
use attache_core::hub::SessionHandle;
use attache_core::ids::SessionId;
use attache_core::part::Part;
use attache_core::ports::store::ModelRef;
use attache_core::turn::TurnEnd;

use crate::world::*;

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

/// `severity: title: description` of each notice in an answer.
fn kept(world: &World, session: &SessionId, answer: usize) -> Vec<String> {
    let notice = |part: &Part| match part {
        Part::Data { name, data, .. } if name == "notice" => Some(attache_core::notice::line(data)),
        _ => None,
    };
    world.answers(session)[answer].iter().filter_map(notice).collect()
}

/// The texts and results of the last request, passage by passage.
fn last_request(world: &World) -> Vec<String> {
    let request = world.model.requests().last().unwrap().clone();
    let said = |part: &Part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Tool(tool) => tool.output.as_ref().map(ToString::to_string),
        _ => None,
    };
    request.passages.iter().map(|passage| passage.parts.iter().filter_map(said).collect()).collect()
}

async fn with_small_model(world: &World) -> (Process, SessionHandle) {
    let (process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "small")).await.unwrap();
    (process, session)
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_failed_turn_is_kept_with_it() {
    let world = World::new("on \"bad\"\n error permanent \"no such tune\"\non *\n text \"fine\"");
    let (process, session) = world.session().await;
    assert!(matches!(say(&session, "bad").await, TurnEnd::Failed { .. }));
    assert_eq!(kept(&world, session.id(), 0), ["error: The turn failed: no such tune"]);
    let exported = process.hub.export(session.id(), Format::Markdown).await.unwrap();
    assert!(exported.contains("> **error: The turn failed: no such tune**"), "{exported}");
    // A prompt that failed for another reason than its content is still part of the conversation.
    assert_eq!(say(&session, "more").await, finished());
    assert_eq!(last_request(&world), ["bad", "", "more"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_in_the_words_of_the_provider() {
    let world = World::new("on \"bad\"\n error refused \"against the rules\"\non *\n text \"fine\"");
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "bad").await, TurnEnd::Finished(FinishReason::ContentFilter));
    assert_eq!(kept(&world, session.id(), 0), ["warning: The model declined this prompt: against the rules"]);
    assert_eq!(say(&session, "more").await, finished());
    assert_eq!(last_request(&world), ["more"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_too_long_or_unreadable_is_left_out_of_the_next_request() {
    for kind in ["overflow", "unreadable", "attachment"] {
        let script = format!("on \"bad\"\n error {kind} \"no\"\non *\n text \"fine\"");
        let mut world = World::new(&script);
        let (process, session) = world.session().await;
        assert_eq!(say(&session, "first").await, finished());
        assert!(matches!(say(&session, "bad").await, TurnEnd::Failed { .. }), "{kind}");
        let told = kept(&world, session.id(), 1);
        assert_eq!(told[0], "warning: The next requests leave out this prompt");
        assert!(told[1].starts_with("error: The turn failed"), "{told:?}");
        assert_eq!(say(&session, "more").await, finished());
        assert_eq!(last_request(&world), ["first", "fine", "more"], "{kind}");
        // After a restart as well.
        process.kill();
        world.change_model(std::sync::Arc::new(
            attache_models::ScriptModel::parse("script", &script).unwrap(),
        ));
        let session = world.process().hub.open(session.id()).await.unwrap();
        assert_eq!(say(&session, "again").await, finished());
        assert_eq!(last_request(&world), ["first", "fine", "more", "fine", "again"], "{kind}");
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn results_that_are_too_long_are_left_out_of_the_next_request() {
    let script = "on \"go\"\n call look {\"path\":\"a\"}\n ---\n call look {\"path\":\"b\"}\n ---\n \
                  error overflow \"too long\"\non *\n text \"fine\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    assert!(matches!(say(&session, "go").await, TurnEnd::Failed { .. }));
    assert_eq!(kept(&world, session.id(), 0)[0], "warning: The next requests leave out the last results");
    assert_eq!(say(&session, "more").await, finished());
    let request = last_request(&world);
    assert_eq!(request[..2], ["go", "\"look done\""]);
    assert!(request[2].contains("left out"), "{request:?}");
    // The rows keep what the call gave.
    assert_eq!(tools_of(&world.answers(session.id())[0])[1].output, Some("look done".into()));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_result_that_alone_is_too_large_is_left_out_and_the_turn_goes_on() {
    let known = "model small context=1000 max_output=100\non \"go\"\n call look {\"path\":\"a\"}\n \
                 call look {\"path\":\"b\",\"bytes\":9000}\n usage input=100 output=1\n ---\n text \"fine\"\n\
                 on *\n text \"more\"";
    let said_by_the_provider = known
        .replace("context=1000", "context=100000")
        .replace("text \"fine\"", "error overflow \"too long\" times=1\n text \"fine\"");
    for script in [known.to_owned(), said_by_the_provider] {
        let mut world = World::new(&script);
        let (process, session) = with_small_model(&world).await;
        assert_eq!(say(&session, "go").await, finished());
        let told = kept(&world, session.id(), 0);
        let title = "warning: A result did not fit the model's context and is left out: look: 9011 bytes";
        assert_eq!(told, [title], "{script}");
        let request = last_request(&world);
        assert!(request[1].starts_with("\"look done\"\"(left out: "), "{request:?}");
        // The rows keep it, and the next requests go without it, also after a restart.
        let kept = tools_of(&world.answers(session.id())[0])[1].output.clone().unwrap();
        assert_eq!(kept.as_str().map(str::len), Some(9_009));
        process.kill();
        world.change_model(std::sync::Arc::new(
            attache_models::ScriptModel::parse("script", &script).unwrap(),
        ));
        let session = world.process().hub.open(session.id()).await.unwrap();
        assert_eq!(say(&session, "again").await, finished());
        assert_eq!(last_request(&world)[1], request[1]);
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_request_that_certainly_does_not_fit_is_not_sent() {
    let world = World::new("model small context=1000 max_output=100\non *\n text \"x\"");
    let (_process, session) = with_small_model(&world).await;
    let TurnEnd::Failed { message, .. } = say(&session, &"long ".repeat(5_000)).await else { panic!() };
    assert!(message.contains("of the 1000 that script/small takes"), "{message}");
    assert!(world.model.requests().is_empty(), "it was sent");
    assert_eq!(say(&session, "b").await, finished());
}

#[tokio::test(start_paused = true)]
async fn people_are_told_once_when_the_context_fills_up() {
    let script = "model small context=1000 max_output=100\non \"a\"\n text \"x\"\n usage input=700 output=1\n\
                  on *\n text \"x\"\n usage input=850 output=1";
    let world = World::new(script);
    let (_process, session) = with_small_model(&world).await;
    for text in ["a", "b", "c"] {
        assert_eq!(say(&session, text).await, finished());
    }
    assert_eq!(kept(&world, session.id(), 0), [""; 0]);
    let told = kept(&world, session.id(), 1);
    assert!(
        told[0].starts_with("warning: 85 % of the model's context is used: 851 of 1000 tokens."),
        "{told:?}"
    );
    assert_eq!(kept(&world, session.id(), 2), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_can_not_fit_is_not_sent() {
    let script = "model small context=1000 max_output=100\non *\n text \"x\"\n usage input=960 output=1";
    let world = World::new(script);
    let (_process, session) = with_small_model(&world).await;
    assert_eq!(say(&session, "a").await, finished());
    let sent = world.model.requests().len();
    let TurnEnd::Failed { message, .. } = say(&session, &"long ".repeat(50)).await else { panic!() };
    assert!(
        message.contains("about 1024 tokens of the 1000") && message.contains("start a new session"),
        "{message}"
    );
    assert_eq!(world.model.requests().len(), sent, "it was sent");
    // What fits goes on.
    assert_eq!(say(&session, "b").await, finished());
    assert_eq!(last_request(&world), ["a", "x", "b"]);
    world.check_rest(session.id());
}
