//! Where the compactor cuts, what a summariser reads, and what survives without one.

use super::*;
use crate::agents::{Agents, COMPACTION_AGENT};
use crate::ids::{CallId, SessionId};
use crate::part::ToolPart;
use crate::ports::compaction::{NoteWriter, ProgressSender};
use serde_json::json;

fn passage(id: &str, role: Role, text: &str) -> Arc<Passage> {
    let text = Part::Text { text: text.into(), state: None, provider_metadata: None };
    Arc::new(Passage::new(MessageId::new(id), role, vec![text]))
}

/// Turns of a prompt and an answer of so many bytes each; the last has only its prompt.
fn turns(answers: &[usize]) -> Vec<Arc<Passage>> {
    let mut passages = Vec::new();
    for (turn, bytes) in answers.iter().enumerate() {
        passages.push(passage(&format!("u{turn}"), Role::User, &format!("prompt {turn}")));
        passages.push(passage(&format!("a{turn}"), Role::Assistant, &"x".repeat(*bytes)));
    }
    passages.push(passage("now", Role::User, "the prompt of the moment"));
    passages
}

fn request(passages: Vec<Arc<Passage>>, limit_tokens: u64) -> CompactionRequest {
    CompactionRequest {
        session_id: SessionId::new("ses"),
        root: "/w".into(),
        info: Arc::new(ModelInfo::undescribed(ModelRef::new("script", "default"))),
        instructions: "".into(),
        writer: NoteWriter::default(),
        thought: None,
        system: "".into(),
        tools: Arc::new([]),
        conversation: passages.into(),
        prompt: MessageId::new("now"),
        occasion: Occasion::Overflow,
        progress: ProgressSender::default(),
        expected_tokens: None,
        limit_tokens,
        reason: String::new(),
        parent_span: None,
    }
}

fn tail(passages: Vec<Arc<Passage>>, limit_tokens: u64) -> Option<(Option<String>, bool)> {
    let plan = CompactionPlan::of(&request(passages, limit_tokens))?;
    Some((plan.tail_start.map(|id| id.to_string()), plan.unanswered.is_some()))
}

#[test]
fn the_last_two_turns_stay_one_if_they_are_large_and_none_if_that_is() {
    let start = |answers: &[usize]| tail(turns(answers), 10_000).unwrap().0.unwrap();
    assert_eq!(start(&[40_000, 400, 400]), "u1");
    assert_eq!(start(&[40_000, 9_000, 4_000]), "u2");
    assert_eq!(start(&[40_000, 400, 20_000]), "now");
}

#[test]
fn a_turn_that_fills_the_window_is_summarised_with_its_prompt_repeated() {
    let mut passages = turns(&[400]);
    passages.push(passage("answer", Role::Assistant, &"x".repeat(30_000)));
    assert_eq!(tail(passages, 10_000), Some((None, true)));
    // A single prompt that is too long can't be shortened.
    assert_eq!(tail(vec![passage("now", Role::User, &"x".repeat(90_000))], 10_000), None);
    assert_eq!(tail(vec![passage("now", Role::User, "short")], 10_000), None);
}

#[test]
fn the_last_prompt_is_known_where_it_does_not_stay() {
    let last = |passages: Vec<Arc<Passage>>, occasion| {
        let request = CompactionRequest { occasion, ..request(passages, 10_000) };
        CompactionPlan::of(&request).unwrap().last_prompt(&request.conversation)
    };
    let by_command = || Occasion::Command { keep: String::new() };
    assert_eq!(last(turns(&[400]), by_command()).as_deref(), Some("the prompt of the moment"));
    assert_eq!(last(turns(&[40_000, 400, 400]), Occasion::Overflow), None, "it stays");
    let summary = passage("s", Role::User, "<conversation_summary>\nx");
    let answer = passage("a", Role::Assistant, "x");
    assert_eq!(last(vec![summary, answer], by_command()), None);
}

#[test]
fn results_are_shown_by_their_beginning_and_end() {
    let mut tool = ToolPart::new(CallId::new("c"), "edit");
    tool.input = Some(json!({ "path": "/w/a.rs" }));
    tool.output = Some(json!(format!("begin {} end", "y".repeat(50_000))));
    let parts = vec![Part::Tool(Box::new(tool))];
    let answer = Arc::new(Passage::new(MessageId::new("a"), Role::Assistant, parts));
    let transcript = ConversationText::of(&[passage("u", Role::User, "go"), answer]);
    assert!(transcript.text.contains("begin") && transcript.text.contains(" end"), "{}", transcript.text);
    assert!(transcript.text.len() < 3_000, "{}", transcript.text.len());
    // "begin", "end" and two blanks beside the letters; 800 bytes of the beginning stay, 400 of the end.
    assert!(transcript.text.contains("(… 48810 bytes …)"), "{}", transcript.text);
}

#[test]
fn the_headings_are_those_of_the_agents_prompt() {
    let agents = Agents::builtin();
    let prompt = &agents.get(COMPACTION_AGENT).unwrap().system_prompt;
    let headings: Vec<&str> = prompt.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings, HEADINGS);
}

#[test]
fn pieces_hold_everything_until_the_middle_has_to_go() {
    let text = "äöü a line\n".repeat(1_000);
    let transcript =
        ConversationText::of(&[passage("u", Role::User, &text), passage("a", Role::Assistant, "end")]);
    for bytes in [LEAST, 5_000, 1_000_000] {
        let pieces = transcript.pieces(bytes, usize::MAX);
        assert_eq!(pieces.concat(), transcript.text);
        assert!(pieces.iter().all(|piece| piece.len() <= bytes));
    }
    let pieces = transcript.pieces(500, 4);
    assert_eq!(pieces.len(), 4);
    assert!(pieces[2].contains("are left out here") && pieces[3].contains("end"));
}

const LEAST: usize = transcript::LEAST_PIECE;

#[test]
fn inside_of_a_long_turn_the_last_step_stays_and_by_command_nothing_does() {
    let step = |call: &str, bytes: usize| {
        let mut tool = ToolPart::new(CallId::new(call), "read");
        tool.output = Some(json!("x".repeat(bytes)));
        Arc::new(Passage::new(MessageId::new("answer"), Role::Assistant, vec![Part::Tool(Box::new(tool))]))
    };
    let long_turn = |last: usize| {
        let mut passages = turns(&[400]);
        passages.extend([step("one", 20_000), step("two", 4_000), step("three", last)]);
        passages
    };
    let plan =
        |passages, occasion| CompactionPlan::of(&CompactionRequest { occasion, ..request(passages, 10_000) });
    let kept = plan(long_turn(4_000), Occasion::Overflow).unwrap();
    assert_eq!((kept.tail, kept.tail_call), (5, Some(CallId::new("three"))));
    assert_eq!(kept.unanswered.as_deref(), Some("the prompt of the moment"));
    let too_large = plan(long_turn(30_000), Occasion::Overflow).unwrap();
    assert_eq!((too_large.tail, too_large.tail_call), (6, None));
    let all = plan(long_turn(400), Occasion::Command { keep: String::new() }).unwrap();
    assert_eq!((all.tail, all.tail_start, all.unanswered), (6, None, None));
}
