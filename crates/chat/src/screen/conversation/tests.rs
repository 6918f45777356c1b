//! Whole conversations, and what the screen shows of them: `UPDATE_EXPECT=1` rewrites the pictures in
//! `screens`.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandsUpdate, ContentChunk, Cost, Diff, PermissionOption,
    PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, SessionMode, SessionModeState, SessionUpdate,
    ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind, UsageUpdate,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::screen::composer::{Embeds, PictureWay};
use crate::screen::content;
use crate::screen::drawing::Canvas;
use crate::screen::theme::{Colours, Signs};
use crate::screen::wrap::line_columns;

mod pictures;

const RICH: ScreenTheme = ScreenTheme { colours: Colours::Sixteen, ..ScreenTheme::PLAIN };
const BARE: ScreenTheme = ScreenTheme { signs: Signs::Ascii, ..ScreenTheme::PLAIN };

fn talk_on(columns: u16, rows: u16, theme: ScreenTheme) -> ScreenState {
    let agent = AgentFacts {
        name: "attache".to_owned(),
        takes: PromptTakes { embeds: Embeds::Texts, pictures: PictureWay::Taken },
        queues: Queues::Agent,
        can_list: true,
        can_load: true,
        can_fork: true,
        can_rewind: true,
    };
    let setting = ScreenSetting {
        theme,
        columns,
        rows,
        directory: "/w".into(),
        agent,
        branch: Some("main".to_owned()),
        echo: PromptEcho::Shown,
        run: "t".to_owned(),
    };
    let mut talk = ScreenState::new(setting, PromptHistory::default());
    let modes = vec![SessionMode::new("build", "Build"), SessionMode::new("plan", "Plan")];
    talk.facts_mut().modes = Some(SessionModeState::new("build", modes));
    talk
}

fn talk() -> ScreenState {
    talk_on(80, 24, RICH)
}

fn press(talk: &mut ScreenState, code: KeyCode) {
    talk.key(KeyEvent::from(code));
}

fn control(talk: &mut ScreenState, letter: char) {
    talk.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
}

fn type_in(talk: &mut ScreenState, text: &str) {
    text.chars().for_each(|character| press(talk, KeyCode::Char(character)));
}

fn say(talk: &mut ScreenState, text: &str) {
    type_in(talk, text);
    press(talk, KeyCode::Enter);
}

fn answer(talk: &mut ScreenState, text: &str) {
    talk.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into())));
}

fn prompts(intents: &[Intent]) -> Vec<(String, Delivery)> {
    let prompt = |intent: &Intent| match intent {
        Intent::Prompt { blocks, delivery, .. } => Some((content::prompt_text(blocks), *delivery)),
        _ => None,
    };
    intents.iter().filter_map(prompt).collect()
}

fn end(talk: &mut ScreenState, number: u32) {
    let name = PromptName(format!("t-{number}"));
    talk.prompt_ended(&name, Ok(&PromptResponse::new(StopReason::EndTurn)));
}

fn asked(call: &str) -> RequestPermissionRequest {
    let fields = ToolCallUpdateFields::new().title("cargo test\nrm -rf x".to_owned()).kind(ToolKind::Execute);
    let options = vec![
        PermissionOption::new("once", "Allow once", PermissionOptionKind::AllowOnce),
        PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
    ];
    RequestPermissionRequest::new("s", ToolCallUpdate::new(call.to_owned(), fields), options)
}

fn screen(talk: &mut ScreenState) -> Vec<String> {
    let mut lines: Vec<String> = talk.take_finished().iter().map(ToString::to_string).collect();
    lines.extend(talk.view().lines.iter().map(ToString::to_string));
    lines
}

#[test]
fn a_prompt_is_sent_shown_and_answered() {
    let mut talk = talk();
    say(&mut talk, "hello");
    assert_eq!(prompts(&talk.take_intents()), [("hello".to_owned(), Delivery::Queued)]);
    answer(&mut talk, "Good ");
    answer(&mut talk, "day.\n");
    assert!(screen(&mut talk).contains(&"  Good day.".to_owned()));
    end(&mut talk, 1);
    assert!(!talk.is_working());
    assert_eq!(talk.take_finished().last().unwrap().to_string(), "  Good day.");
}

#[test]
fn what_is_sent_while_it_works_waits_and_can_be_taken_back() {
    let mut talk = talk();
    say(&mut talk, "one");
    say(&mut talk, "two");
    say(&mut talk, "three");
    talk.take_intents();
    assert!(screen(&mut talk).contains(&"  waits: three".to_owned()));
    press(&mut talk, KeyCode::Up);
    assert_eq!(talk.composer.text(), "three");
    assert_eq!(talk.take_intents(), [Intent::TakeBack(PromptName("t-3".to_owned()))]);
    end(&mut talk, 3);
    end(&mut talk, 1);
    assert!(screen(&mut talk).contains(&"› two".to_owned()));
    assert!(talk.is_working());
}

#[test]
fn an_agent_that_takes_one_prompt_at_a_time_gets_them_one_by_one() {
    let mut talk = talk();
    talk.meet(AgentFacts { queues: Queues::Ourselves, ..talk.agent.clone() });
    say(&mut talk, "one");
    say(&mut talk, "two");
    assert_eq!(prompts(&talk.take_intents()).len(), 1);
    end(&mut talk, 1);
    assert_eq!(prompts(&talk.take_intents()), [("two".to_owned(), Delivery::Queued)]);
}

#[test]
fn a_steering_prompt_comes_before_what_waits() {
    let mut talk = talk();
    say(&mut talk, "one");
    say(&mut talk, "two");
    type_in(&mut talk, "now");
    control(&mut talk, 's');
    let intents = talk.take_intents();
    assert_eq!(prompts(&intents).last().unwrap(), &("now".to_owned(), Delivery::Steering));
    end(&mut talk, 1);
    assert!(screen(&mut talk).contains(&"› now".to_owned()));
}

#[test]
fn a_question_is_shown_whole_and_answered_by_a_number() {
    let mut talk = talk();
    say(&mut talk, "test it");
    talk.at(Duration::from_secs(5));
    talk.ask_permission(QuestionNumber(7), asked("c"));
    let shown = screen(&mut talk);
    assert!(shown.contains(&"  ? $ cargo test".to_owned()), "{shown:?}");
    assert!(shown.contains(&"      rm -rf x".to_owned()), "{shown:?}");
    talk.take_intents();
    press(&mut talk, KeyCode::Char('1'));
    let expected = Intent::Permit { question: QuestionNumber(7), option: Some("once".into()) };
    assert_eq!(talk.take_intents(), [expected]);
}

#[test]
fn a_rejection_with_a_word_steers() {
    let mut talk = talk();
    say(&mut talk, "test it");
    talk.at(Duration::from_secs(5));
    talk.ask_permission(QuestionNumber(1), asked("c"));
    talk.take_intents();
    press(&mut talk, KeyCode::Char('3'));
    say(&mut talk, "not that");
    let intents = talk.take_intents();
    assert_eq!(intents[0], Intent::Permit { question: QuestionNumber(1), option: Some("no".into()) });
    assert_eq!(prompts(&intents), [("not that".to_owned(), Delivery::Steering)]);
}

#[test]
fn a_question_that_is_withdrawn_makes_room_for_the_next() {
    let mut talk = talk();
    talk.ask_permission(QuestionNumber(1), asked("c"));
    talk.ask_permission(QuestionNumber(2), asked("d"));
    talk.withdraw(QuestionNumber(1));
    talk.at(Duration::from_secs(5));
    talk.take_intents();
    press(&mut talk, KeyCode::Esc);
    let stop = Intent::Permit { question: QuestionNumber(2), option: None };
    assert_eq!(talk.take_intents(), [stop, Intent::Cancel]);
    assert!(matches!(talk.front, Front::Composer));
}

#[test]
fn escape_stops_and_twice_goes_back() {
    let mut talk = talk();
    say(&mut talk, "one");
    talk.take_intents();
    press(&mut talk, KeyCode::Esc);
    assert_eq!(talk.take_intents(), [Intent::Cancel]);
    talk.prompt_ended(&PromptName("t-1".into()), Ok(&PromptResponse::new(StopReason::Cancelled)));
    talk.at(Duration::from_secs(9));
    press(&mut talk, KeyCode::Esc);
    press(&mut talk, KeyCode::Esc);
    press(&mut talk, KeyCode::Enter);
    assert_eq!(talk.take_intents(), [Intent::Rewind(PromptName("t-1".into()))]);
    talk.rewound(&PromptName("t-1".into()), &["one".into()], "Went back");
    assert_eq!(talk.composer.text(), "one");
    assert!(talk.past.is_empty());
}

#[test]
fn two_interrupts_leave_and_one_empties_the_line() {
    let mut talk = talk();
    type_in(&mut talk, "x");
    control(&mut talk, 'c');
    assert!(talk.composer.is_empty() && talk.take_intents().is_empty());
    talk.at(Duration::from_secs(9));
    control(&mut talk, 'c');
    assert!(talk.take_intents().is_empty());
    control(&mut talk, 'c');
    assert_eq!(talk.take_intents(), [Intent::Leave]);
}

#[test]
fn own_commands_open_menus_and_others_are_the_agents() {
    let mut talk = talk();
    let commands = AvailableCommandsUpdate::new(vec![AvailableCommand::new("compact", "makes room")]);
    talk.update(SessionUpdate::AvailableCommandsUpdate(commands));
    type_in(&mut talk, "/mod");
    press(&mut talk, KeyCode::Enter);
    press(&mut talk, KeyCode::Enter);
    press(&mut talk, KeyCode::Down);
    press(&mut talk, KeyCode::Enter);
    assert_eq!(talk.take_intents(), [Intent::SetMode("plan".into())]);
    type_in(&mut talk, "/compact the tables");
    press(&mut talk, KeyCode::Enter);
    assert_eq!(prompts(&talk.take_intents())[0].0, "/compact the tables");
}

#[test]
fn a_load_shows_prompts_and_a_rewind_knows_them() {
    let mut talk = talk();
    for part in ["fix ", "it"] {
        let chunk =
            ContentChunk::new(part.into()).message_id(agent_client_protocol_schema::v1::MessageId::new("m1"));
        talk.update(SessionUpdate::UserMessageChunk(chunk));
    }
    answer(&mut talk, "Done.");
    talk.replayed();
    let shown = screen(&mut talk);
    assert!(shown.starts_with(&["› fix it".to_owned(), String::new(), "  Done.".to_owned()]), "{shown:?}");
    assert_eq!(talk.past[0].0, PromptName("m1".into()));
}

#[test]
fn an_agent_that_dies_leaves_the_screen_as_it_was_and_what_waits_here_goes_on() {
    let mut talk = talk();
    talk.meet(AgentFacts { queues: Queues::Ourselves, ..talk.agent.clone() });
    say(&mut talk, "one");
    say(&mut talk, "two");
    answer(&mut talk, "Half an ans");
    talk.take_intents();
    talk.agent_ended("The agent ended (signal: 9).");
    talk.prompt_cut(&PromptName("t-1".into()));
    let shown = screen(&mut talk).join("\n");
    assert!(shown.contains("  Half an ans\n\n  ✗ The agent ended (signal: 9).\n\n› two"), "{shown}");
    assert_eq!(prompts(&talk.take_intents()).len(), 1);
}

#[test]
fn nothing_grows_with_the_conversation() {
    let mut talk = talk();
    for number in 1..=2_000 {
        say(&mut talk, &format!("prompt {number}"));
        talk.update(SessionUpdate::ToolCall(
            ToolCall::new(format!("c{number}"), "Read `a`").status(ToolCallStatus::Completed),
        ));
        answer(&mut talk, "An answer.\n\n");
        end(&mut talk, number);
        talk.take_intents();
        talk.take_finished();
    }
    assert!(talk.past.len() <= REWINDS_KEPT);
    assert!(talk.transcript.details().count() <= crate::screen::limits::DETAILS_KEPT);
    assert!(talk.view().lines.len() < 10);
}

#[test]
fn nothing_of_the_agent_reaches_the_terminal_raw() {
    const EVIL: &str = "a\x1b]0;x\x07b\u{202e}c\u{200b}\x1b[2Jd\r";
    let mut talk = talk_on(60, 24, RICH);
    say(&mut talk, "go");
    talk.at(Duration::from_secs(5));
    answer(&mut talk, &format!("{EVIL} `{EVIL}` [{EVIL}](http://{EVIL})\n\n```{EVIL}\n{EVIL}\n"));
    talk.update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(EVIL.into())));
    let diff = Diff::new(format!("/w/{EVIL}"), EVIL.to_owned()).old_text(EVIL.replace('d', "e"));
    let call = ToolCall::new("c", EVIL)
        .kind(ToolKind::Edit)
        .content(vec![ToolCallContent::Diff(diff), EVIL.to_owned().into()]);
    talk.update(SessionUpdate::ToolCall(call));
    let entry = PlanEntry::new(EVIL, PlanEntryPriority::High, PlanEntryStatus::Pending);
    talk.update(SessionUpdate::Plan(Plan::new(vec![entry])));
    let commands = vec![AvailableCommand::new(format!("x{EVIL}"), EVIL)];
    talk.update(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands)));
    let mut shown = screen(&mut talk);
    type_in(&mut talk, "/x");
    shown.extend(screen(&mut talk));
    talk.ask_permission(QuestionNumber(1), {
        let fields = ToolCallUpdateFields::new().title(EVIL.to_owned());
        let options = vec![PermissionOption::new("a", EVIL, PermissionOptionKind::AllowOnce)];
        RequestPermissionRequest::new("s", ToolCallUpdate::new("c", fields), options)
    });
    shown.extend(screen(&mut talk));
    shown.push(talk.title());
    for line in shown {
        assert!(line.chars().all(|c| !attache_acp_client::legible::is_hidden(c)), "{line:?}");
    }
}

#[test]
fn every_line_fits_and_the_live_part_fits_the_screen() {
    for (columns, rows) in [(8, 3), (40, 12), (80, 24)] {
        let mut talk = talk_on(columns, rows, RICH);
        say(&mut talk, &"long words and more ".repeat(20));
        answer(&mut talk, &"| a | b |\n".repeat(30));
        type_in(&mut talk, &"typed ".repeat(60));
        let view = talk.view();
        assert!(view.lines.len() <= usize::from(rows), "{} lines", view.lines.len());
        assert!(view.lines.iter().all(|line| line_columns(line) <= usize::from(columns)));
        let (column, line) = view.cursor.unwrap();
        assert!(column < usize::from(columns) && line < view.lines.len());
    }
}

#[test]
fn without_keys_everything_is_answered_by_lines() {
    let mut talk = talk();
    talk.line("change it");
    talk.take_intents();
    talk.ask_permission(QuestionNumber(1), asked("c"));
    let shown = talk.dialog_lines().join("\n");
    assert!(shown.contains("1 Allow once") && shown.contains("2 Reject"), "{shown}");
    talk.line("nonsense");
    assert!(!talk.dialog_lines().is_empty(), "it is still asked");
    talk.line("2");
    let intents = talk.take_intents();
    assert!(matches!(&intents[..], [.., Intent::Permit { option: Some(option), .. }] if &*option.0 == "no"));
    assert!(talk.dialog_lines().is_empty());
    talk.line("/mode");
    let shown = talk.dialog_lines().join("\n");
    assert!(shown.contains("1 Build (now)") && shown.contains("2 Plan"), "{shown}");
    talk.line("2");
    assert_eq!(talk.take_intents(), [Intent::SetMode("plan".into())]);
    talk.line("/keys");
    assert!(talk.dialog_lines().join("\n").contains("ctrl-s"));
    assert!(talk.dialog_lines().is_empty(), "a page is read once");
    talk.line("one \\");
    talk.line("two");
    assert_eq!(prompts(&talk.take_intents()), [("one \ntwo".to_owned(), Delivery::Queued)]);
}

#[test]
fn a_command_of_the_users_own_goes_along_with_the_next_prompt() {
    let mut talk = talk();
    say(&mut talk, "!cargo test");
    assert_eq!(talk.take_intents(), [Intent::Run("cargo test".to_owned())]);
    talk.own_output("one failed\n");
    say(&mut talk, "!again");
    assert_eq!(talk.take_intents(), [], "one at a time");
    control(&mut talk, 'u');
    press(&mut talk, KeyCode::Esc);
    assert_eq!(talk.take_intents(), [Intent::StopRun]);
    talk.own_ended("exit status: 101", OwnRunEnd::Badly);
    let shown = screen(&mut talk).join("\n");
    assert!(shown.contains("$ cargo test") && shown.contains("one failed"), "{shown}");
    say(&mut talk, "why?");
    let intents = talk.take_intents();
    let [Intent::Prompt { blocks, .. }] = &intents[..] else { panic!("{intents:?}") };
    let sent = serde_json::to_value(blocks).unwrap();
    let told = sent[0]["resource"]["text"].as_str().unwrap();
    assert!(told.contains("$ cargo test\none failed\n(exit status: 101)"), "{told}");
    assert_eq!(sent[1]["text"], "why?");
}

#[test]
fn what_is_finished_while_a_page_covers_the_screen_comes_behind_it() {
    let mut talk = talk();
    say(&mut talk, "hello");
    talk.take_finished();
    press(&mut talk, KeyCode::Char('?'));
    assert_eq!(talk.view().extent, ViewExtent::Whole);
    answer(&mut talk, "Said meanwhile.\n\n");
    end(&mut talk, 1);
    assert!(talk.take_finished().is_empty());
    press(&mut talk, KeyCode::Esc);
    let shown: Vec<String> = talk.take_finished().iter().map(ToString::to_string).collect();
    assert!(shown.contains(&"  Said meanwhile.".to_owned()), "{shown:?}");
}

#[test]
fn files_that_are_found_later_are_offered_for_what_is_typed_already() {
    let mut talk = talk();
    type_in(&mut talk, "look at @main");
    talk.know_files(vec!["src/main.rs".into()]);
    assert!(screen(&mut talk).iter().any(|line| line.contains("@src/main.rs")));
}

#[test]
fn a_picture_is_drawn_below_its_name_where_the_terminal_can() {
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = || {
        let image = agent_client_protocol_schema::v1::ImageContent::new(png, "image/png");
        SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::Image(image)))
    };
    let mut talk = talk_on(80, 24, ScreenTheme { canvas: Canvas::Kitty, ..RICH });
    talk.update(image());
    let lines = talk.take_finished();
    let drawings = talk.take_drawings();
    assert_eq!((lines.len(), drawings.len(), drawings[0].0), (1, 1, 1));
    let mut plain = talk_on(80, 24, RICH);
    plain.update(image());
    assert_eq!((plain.take_finished().len(), plain.take_drawings().len()), (1, 0));
}
