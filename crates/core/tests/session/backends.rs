//! A turn that another backend than the loop runs: stored, shown, cancelled, asked about and recovered alike.

use attache_core::chunk::FinishReason;
use attache_core::events::RunState;
use attache_core::part::ToolState;
use attache_core::ports::client::Answer;
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::backend::ForeignBackend;

use crate::world::*;

fn world() -> World {
    World::new("on *\n text \"the model must not be asked\"").with_backend(ForeignBackend::default())
}

#[tokio::test(start_paused = true)]
async fn its_chunks_are_stored_and_shown_as_the_answer() {
    let world = world();
    let (_process, session) = world.session().await;
    let (shown, reader) = read(join(&session, answering(&[])).await);
    assert_eq!(say(&session, "please stream").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(text_of(&world.answers(session.id())[0]), "one twothree");
    assert!(shown.lock().unwrap().iter().any(|(_, _, chunk)| chunk.is_terminal()));
    assert_eq!(say(&session, "again stream").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.prompts(session.id()), ["please stream", "again stream"]);
    assert!(world.model.requests().is_empty(), "the loop's model has no part in it");
    world.check_rest(session.id());
    reader.abort();
}

#[tokio::test(start_paused = true)]
async fn cancel_reaches_it_and_the_session_closes_what_it_left_open() {
    let world = world();
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("please wait"));
    until(&session, |state| *state == RunState::Busy).await;
    pause(5).await;
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert_eq!(text_of(&world.answers(session.id())[0]), "working");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn its_error_is_the_error_of_the_turn_and_the_next_prompt_goes_on() {
    let world = world();
    let (_process, session) = world.session().await;
    let end = say(&session, "please fail").await;
    assert!(matches!(&end, TurnEnd::Failed { message, .. } if message.contains("`fail`")), "{end:?}");
    assert_eq!(say(&session, "please stream").await, TurnEnd::Finished(FinishReason::Stop));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn it_can_not_end_a_turn_behind_the_back_of_its_session() {
    let world = world();
    let (_process, session) = world.session().await;
    let end = say(&session, "please overstep").await;
    assert!(matches!(&end, TurnEnd::Failed { message, .. } if message.contains("the session records")));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn what_it_asks_a_person_answers() {
    for (answer, state) in [
        (Answer::AllowOnce, ToolState::OutputAvailable),
        (Answer::AllowAlways, ToolState::OutputAvailable),
        (Answer::RejectOnce, ToolState::OutputDenied),
    ] {
        let world = world();
        let (_process, session) = world.session().await;
        let client = answering(&[answer]);
        let _participant = join(&session, client.clone()).await;
        assert_eq!(say(&session, "please ask").await, TurnEnd::Finished(FinishReason::Stop));
        assert_eq!(client.asked()[0].tool_name, "deploy");
        let parts = &world.answers(session.id())[0];
        assert_eq!(tools_of(parts)[0].state, state);
        assert_eq!(text_of(parts), "done");
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_dead_process_is_asked_again_or_its_call_fails() {
    for can_resume in [true, false] {
        let world = World::new("on *\n text \"no\"").with_backend(ForeignBackend { can_resume });
        let (process, session) = world.session().await;
        let _ticket = session.prompt(prompt("please ask"));
        until(&session, |state| *state == RunState::WaitingOnApproval).await;
        let id = session.id().clone();
        process.kill();
        let process = world.process();
        let session = process.hub.open(&id).await.unwrap();
        let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
        until(&session, |state| *state == RunState::Idle).await;
        let parts = &world.answers(&id)[0];
        let expected = if can_resume { ToolState::OutputAvailable } else { ToolState::OutputError };
        assert_eq!(tools_of(parts)[0].state, expected);
        world.check_rest(&id);
    }
}
