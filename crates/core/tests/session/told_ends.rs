//! A turn that ended by itself needs no word; of every other end the model is told, and of an end that is near.

use attache_core::chunk::FinishReason;
use attache_core::hub::People;
use attache_core::part::{Part, ToolState};
use attache_core::ports::client::Answer;
use attache_core::turn::TurnEnd;

use crate::world::*;

/// What the last request says beside what people and models said.
fn notes(world: &World) -> String {
    let requests = world.model.requests();
    let parts = requests.last().unwrap().passages.iter().flat_map(|passage| passage.parts.clone());
    let told = parts.filter_map(|part| match part {
        Part::Data { data, .. } => data["text"].as_str().map(str::to_owned),
        _ => None,
    });
    told.collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_model_is_told_once_how_its_last_turn_ended() {
    let circle = " call look {\"path\":\"a\"}\n ---\n".repeat(12);
    for (steps, told) in [
        (" text \"half\"\n cut".to_owned(), "did not come to its end: the connection to the model was lost"),
        (" text \"half\"\n error permanent \"broken\"".to_owned(), "did not come to its end: broken"),
        (" text \"half\"\n finish length".to_owned(), "reached its length limit"),
        (circle, "did not come to its end: the model made the same `look` call 10 times in a row"),
        (
            " call look {\"path\":\"a\"}\n ---\n call look {\"path\":\"b\"}\n ---\n".repeat(11),
            "at its limit of steps",
        ),
    ] {
        for again in ["here", "in another process"] {
            let world = World::new(&format!("on \"go\"\n{steps}\non *\n text \"yes\""));
            let (process, session) = world.session().await;
            let end = say(&session, "go").await;
            assert!(end != TurnEnd::Finished(FinishReason::Stop), "{steps}: {end:?}");
            let session = match again {
                "here" => session,
                _ => {
                    let id = session.id().clone();
                    process.kill();
                    world.process().hub.open(&id).await.unwrap()
                }
            };
            for prompt in ["next", "and then"] {
                assert_eq!(say(&session, prompt).await, TurnEnd::Finished(FinishReason::Stop));
                assert_eq!(notes(&world).matches(told).count(), 1, "{again}, {prompt}: {}", notes(&world));
            }
            world.check_rest(session.id());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_came_to_its_end_or_said_nothing_needs_no_word() {
    for steps in [" text \"whole\"", " error permanent \"broken\""] {
        let world = World::new(&format!("on \"go\"\n{steps}\non *\n text \"yes\""));
        let (_process, session) = world.session().await;
        say(&session, "go").await;
        say(&session, "next").await;
        assert_eq!(notes(&world), "", "{steps}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_with_its_stream_says_that_it_was_not_run() {
    let world = World::new("on *\n call look {\"path\":\"a\"}\n cut");
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let tool = &tools_of(&world.answers(session.id())[0])[0];
    assert_eq!(tool.state, ToolState::OutputError);
    assert!(tool.error_text.as_ref().unwrap().starts_with("not run: the connection"), "{tool:?}");
}

#[tokio::test(start_paused = true)]
async fn a_few_steps_before_the_limit_the_model_is_told() {
    let steps: String = (0..20).map(|step| format!(" call look {{\"path\":\"{step}\"}}\n ---\n")).collect();
    let world = World::new(&format!("on *\n{steps}")).with_max_steps(9);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::StepLimit);
    let requests = world.model.requests();
    let told = |at: usize| format!("{:?}", requests[at].passages).contains("ends after 3 more answers");
    assert_eq!((requests.len(), told(5), told(6), told(8)), (9, false, true, true));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nothing_came_of_gets_one_more_step() {
    let call = " text \"<tool_call>{}</tool_call>\"";
    for (steps, requests, notices) in [
        (" reasoning \"hm\"\n ---\n text \"done\"".to_owned(), 2, 0),
        (" reasoning \"hm\"\n ---\n reasoning \"hm\"".to_owned(), 2, 1),
        (format!("{call}\n ---\n text \"done\""), 2, 0),
        (format!("{call}\n ---\n{call}"), 2, 1),
        (" text \"Now I look.\"\n finish tool-calls\n ---\n text \"done\"".to_owned(), 2, 0),
        (" text \"done\"".to_owned(), 1, 0),
    ] {
        let world = World::new(&format!("on *\n{steps}"));
        let (_process, session) = world.session().await;
        assert!(matches!(say(&session, "go").await, TurnEnd::Finished(_)), "{steps}");
        assert_eq!(world.model.requests().len(), requests, "{steps}");
        let told = world.answers(session.id())[0]
            .iter()
            .filter(|part| matches!(part, Part::Data { name, .. } if name == "notice"))
            .count();
        assert_eq!(told, notices, "{steps}");
        world.check_rest(session.id());
    }
}

/// Line ends in a string are plainly meant as such, and the next request has what was meant.
#[tokio::test(start_paused = true)]
async fn arguments_that_are_nearly_json_are_taken_as_they_are_meant() {
    use crate::broken_models::{literal, with_arguments};
    let world = literal(vec![with_arguments("look", "{\"path\":\"a\nb\",}"), Vec::new()]);
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let tool = &tools_of(&world.answers(session.id())[0])[0];
    assert_eq!(
        (tool.state, tool.input.clone()),
        (ToolState::OutputAvailable, Some(serde_json::json!({ "path": "a\nb" })))
    );
}

/// A program that always says no is nobody for the model, and nothing goes on after its turn.
#[tokio::test(start_paused = true)]
async fn where_only_a_program_answers_the_model_knows_that_nobody_is_there() {
    let script = "on *\n call touch {\"path\":\"a\"}\n call task {\"subagent_type\":\"explore\",\"prompt\":\"x\",\"background\":true}\n ---\n text \"done\"";
    let world = World::new(script).with_settings(|settings| settings.people = People::OnlyAProgram);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::RejectOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(client.asked().len(), 1, "it counts what was not permitted");
    let tools = tools_of(&world.answers(session.id())[0]);
    let told = serde_json::to_string(&Part::Tool(Box::new(tools[0].clone()))).unwrap();
    assert!(told.contains("no connected person can allow it"), "{told}");
    assert!(tools[1].error_text.as_ref().unwrap().contains("this session ends with your turn"), "{tools:?}");
    let request = &world.model.requests()[0];
    let task = request.tools.iter().find(|tool| &*tool.id == "task").unwrap();
    assert!(!format!("{} {}", task.description, task.parameters).contains("background"), "{task:?}");
}

/// The end of a command in the background, say: with the next result, or with the next prompt.
#[tokio::test(start_paused = true)]
async fn what_a_tool_has_to_tell_comes_with_the_next_step_or_prompt() {
    let world =
        World::new("on \"go\"\n call look {\"path\":\"a\"}\n ---\n text \"done\"\non *\n text \"yes\"");
    let (_process, session) = world.session().await;
    let told = |words: &str| {
        let requests = world.model.requests();
        requests.iter().filter(|request| format!("{:?}", request.passages).contains(words)).count()
    };
    say(&session, "one").await;
    world.runs.tell("bg_1 has ended");
    say(&session, "two").await;
    assert_eq!((world.model.requests().len(), told("bg_1 has ended")), (2, 1));
    let ticket = session.prompt(prompt("go"));
    world.runs.tell("bg_2 has ended");
    end_of(ticket).await;
    assert_eq!(notes(&world).matches("bg_1 has ended").count(), 1, "once");
    assert!(told("bg_2 has ended") >= 1);
    say(&session, "three").await;
    assert!(told("bg_2 has ended") >= 2, "it is kept");
    world.check_rest(session.id());
}
