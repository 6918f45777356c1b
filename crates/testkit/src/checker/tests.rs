//! Each rule is shown to pass on a sound conversation and to fail on the fault it is there for.

use serde_json::{Value, json};

use super::*;

/// A conversation written down: `c` is what the client sends, `a` what the agent sends.
struct Wire(WireChecker);

impl Wire {
    fn new() -> Self {
        Self(WireChecker::new(Client::Adversary))
    }
    fn c(mut self, message: Value) -> Self {
        self.0.feed(Direction::FromClient, with_version(message).to_string().as_bytes());
        self
    }
    fn a(mut self, message: Value) -> Self {
        self.0.feed(Direction::FromAgent, with_version(message).to_string().as_bytes());
        self
    }
    fn raw_a(mut self, line: &[u8]) -> Self {
        self.0.feed(Direction::FromAgent, line);
        self
    }
    fn raw_c(mut self, line: &[u8]) -> Self {
        self.0.feed(Direction::FromClient, line);
        self
    }
    fn update(self, update: Value) -> Self {
        self.a(json!({"method": "session/update", "params": {"sessionId": "ses_1", "update": update}}))
    }
    fn prompt(self, id: u64) -> Self {
        let params = json!({"sessionId": "ses_1", "prompt": [{"type": "text", "text": "go"}]});
        self.c(json!({"id": id, "method": "session/prompt", "params": params}))
    }
    fn answer_prompt(self, id: u64) -> Self {
        self.a(json!({"id": id, "result": {"stopReason": "end_turn"}}))
    }
    /// A session that is there, reached by request 1.
    fn in_session() -> Self {
        Self::new()
            .c(json!({"id": 1, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}))
            .a(json!({"id": 1, "result": {"sessionId": "ses_1"}}))
    }
    fn ask_permission(self, id: u64, call: &str) -> Self {
        let options = json!([{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"}]);
        self.a(json!({"id": id, "method": "session/request_permission", "params":
            {"sessionId": "ses_1", "toolCall": {"toolCallId": call}, "options": options}}))
    }
    fn choose(self, id: u64, option: &str) -> Self {
        self.c(json!({"id": id, "result": {"outcome": {"outcome": "selected", "optionId": option}}}))
    }
    fn rules(self) -> Vec<Rule> {
        self.0.finish(Ending::Complete).into_iter().map(|violation| violation.rule).collect()
    }
}

fn with_version(mut message: Value) -> Value {
    if let Value::Object(entries) = &mut message {
        entries.insert("jsonrpc".to_owned(), "2.0".into());
    }
    message
}

fn text(message_id: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": message_id,
        "content": {"type": "text", "text": "x"}})
}

fn call(id: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "t", "status": "pending"})
}

fn status(id: &str, status: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status})
}

#[test]
fn a_sound_turn_breaks_nothing() {
    let rules = Wire::in_session()
        .prompt(2)
        .update(text("msg_1"))
        .update(call("c1"))
        .ask_permission(1, "c1")
        .choose(1, "yes")
        .update(status("c1", "in_progress"))
        .update(status("c1", "completed"))
        .update(text("msg_1"))
        .answer_prompt(2)
        .update(json!({"sessionUpdate": "session_info_update", "title": "A title"}))
        .rules();
    assert_eq!(rules, []);
}

#[test]
fn a_doubled_answer_is_found() {
    assert_eq!(Wire::in_session().prompt(2).answer_prompt(2).answer_prompt(2).rules(), [Rule::OneAnswer]);
}

#[test]
fn a_missing_answer_is_found_unless_the_connection_was_cut() {
    assert_eq!(Wire::in_session().prompt(2).rules(), [Rule::OneAnswer]);
    assert!(Wire::in_session().prompt(2).0.finish(Ending::Cut).is_empty());
}

#[test]
fn an_answer_to_nothing_is_found() {
    assert_eq!(Wire::in_session().answer_prompt(9).rules(), [Rule::OneAnswer]);
}

#[test]
fn an_id_must_come_back_as_it_was_written() {
    let wire =
        Wire::new().raw_c(br#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"logout","params":{}}"#);
    let wire = wire.raw_a(br#"{"jsonrpc":"2.0","id":9223372036854775808,"result":{}}"#);
    assert_eq!(wire.rules(), []);
    let wire = Wire::new().raw_c(br#"{"jsonrpc":"2.0","id":"7","method":"logout","params":{}}"#);
    let wire = wire.raw_a(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    assert_eq!(wire.rules(), [Rule::OneAnswer, Rule::OneAnswer]);
}

#[test]
fn a_reused_id_is_refused_without_costing_the_first_its_answer() {
    let rules = Wire::in_session()
        .prompt(2)
        .prompt(2)
        .a(json!({"id": 2, "error": {"code": -32600, "message": "id in use"}}))
        .update(text("msg_1"))
        .answer_prompt(2)
        .rules();
    assert_eq!(rules, []);
}

#[test]
fn garbage_is_answered_once_without_an_id() {
    let error = json!({"id": null, "error": {"code": -32700, "message": "no"}});
    assert_eq!(Wire::new().raw_c(b"{nonsense").a(error.clone()).rules(), []);
    assert_eq!(Wire::new().raw_c(b"{nonsense").a(error.clone()).a(error).rules(), [Rule::OneAnswer]);
}

#[test]
fn garbage_with_a_readable_id_is_answered_under_it() {
    let rules = Wire::new()
        .raw_c(br#"{"jsonrpc":"1.0","id":5,"method":"logout"}"#)
        .a(json!({"id": 5, "error": {"code": -32600, "message": "jsonrpc must be 2.0"}}))
        .rules();
    assert_eq!(rules, []);
    let result = Wire::new().raw_c(br#"{"jsonrpc":"1.0","id":5,"method":"logout"}"#);
    assert_eq!(result.a(json!({"id": 5, "result": {}})).rules(), [Rule::OneAnswer]);
}

#[test]
fn a_broken_answer_of_the_client_asks_for_nothing() {
    assert_eq!(Wire::new().raw_c(br#"{"jsonrpc":"2.0","id":5,"result":1,"error":2}"#).rules(), []);
}

#[test]
fn a_line_above_the_cap_is_answered_without_its_id() {
    let mut checker = WireChecker::new(Client::Adversary).with_max_client_line_bytes(10);
    checker.feed(Direction::FromClient, br#"{"jsonrpc":"2.0","id":1,"method":"logout"}"#);
    checker.feed(
        Direction::FromAgent,
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"long"}}"#,
    );
    assert!(checker.finish(Ending::Complete).is_empty());
}

#[test]
fn a_late_update_is_found() {
    let late = Wire::in_session().prompt(2).update(text("msg_1")).answer_prompt(2).update(text("msg_1"));
    assert_eq!(late.rules(), [Rule::LateUpdate]);
    let late = Wire::in_session()
        .prompt(2)
        .update(call("c1"))
        .update(status("c1", "in_progress"))
        .answer_prompt(2)
        .update(status("c1", "completed"));
    assert_eq!(late.rules(), [Rule::LateUpdate]);
}

#[test]
fn background_results_may_follow_under_ids_of_their_own() {
    let wire = Wire::in_session().prompt(2).update(text("msg_1")).answer_prompt(2).update(text("msg_2"));
    assert_eq!(wire.rules(), []);
}

#[test]
fn queued_prompts_own_the_ids_of_their_own_turn() {
    let wire = Wire::in_session()
        .prompt(2)
        .prompt(3)
        .update(text("msg_1"))
        .answer_prompt(2)
        .update(text("msg_2"))
        .answer_prompt(3);
    assert_eq!(wire.rules(), []);
    let late = Wire::in_session()
        .prompt(2)
        .prompt(3)
        .update(text("msg_1"))
        .answer_prompt(2)
        .update(text("msg_1"))
        .answer_prompt(3);
    assert_eq!(late.rules(), [Rule::LateUpdate]);
}

#[test]
fn a_failed_turn_is_over_too() {
    let late = Wire::in_session()
        .prompt(2)
        .update(text("msg_1"))
        .a(json!({"id": 2, "error": {"code": -32603, "message": "the model failed"}}))
        .update(text("msg_1"));
    assert_eq!(late.rules(), [Rule::LateUpdate]);
}

fn load(id: u64) -> Value {
    json!({"id": id, "method": "session/load", "params": {"sessionId": "ses_1", "cwd": "/w", "mcpServers": []}})
}

#[test]
fn a_load_tells_the_past_again() {
    let wire = Wire::in_session()
        .prompt(2)
        .update(text("msg_1"))
        .update(call("c1"))
        .update(status("c1", "completed"))
        .answer_prompt(2)
        .c(load(3))
        .update(text("msg_1"))
        .update(call("c1"))
        .update(status("c1", "completed"))
        .a(json!({"id": 3, "result": {}}));
    assert_eq!(wire.rules(), []);
}

#[test]
fn after_the_load_the_past_is_over_again() {
    let wire = Wire::in_session()
        .prompt(2)
        .update(text("msg_1"))
        .answer_prompt(2)
        .c(load(3))
        .a(json!({"id": 3, "result": {}}))
        .update(text("msg_1"));
    assert_eq!(wire.rules(), [Rule::LateUpdate]);
}

#[test]
fn an_orphan_update_is_found() {
    assert_eq!(
        Wire::in_session().prompt(2).update(status("c1", "completed")).answer_prompt(2).rules(),
        [Rule::ToolCall]
    );
}

#[test]
fn a_call_starts_once_and_ends_once() {
    let twice = Wire::in_session().update(call("c1")).update(call("c1"));
    assert_eq!(twice.rules(), [Rule::ToolCall]);
    let ended = Wire::in_session()
        .update(call("c1"))
        .update(status("c1", "failed"))
        .update(status("c1", "completed"));
    assert_eq!(ended.rules(), [Rule::ToolCall]);
    let revived = Wire::in_session()
        .update(call("c1"))
        .update(status("c1", "completed"))
        .update(status("c1", "in_progress"));
    assert_eq!(revived.rules(), [Rule::ToolCall]);
}

#[test]
fn a_refused_call_must_not_run() {
    for outcome in [
        json!({"outcome": {"outcome": "selected", "optionId": "no"}}),
        json!({"outcome": {"outcome": "selected", "optionId": "never heard of"}}),
        json!({"outcome": {"outcome": "cancelled"}}),
    ] {
        let wire = Wire::in_session()
            .update(call("c1"))
            .ask_permission(1, "c1")
            .c(json!({"id": 1, "result": outcome}))
            .update(status("c1", "in_progress"));
        assert_eq!(wire.rules(), [Rule::Permission], "{outcome}");
    }
    let error = Wire::in_session()
        .update(call("c1"))
        .ask_permission(1, "c1")
        .c(json!({"id": 1, "error": {"code": -32603, "message": "no"}}))
        .update(status("c1", "completed"));
    assert_eq!(error.rules(), [Rule::Permission]);
}

#[test]
fn a_refused_call_ends_as_failed() {
    let wire = Wire::in_session()
        .update(call("c1"))
        .ask_permission(1, "c1")
        .choose(1, "no")
        .update(status("c1", "failed"));
    assert_eq!(wire.rules(), []);
}

#[test]
fn a_call_must_not_run_while_its_permission_is_open() {
    let wire =
        Wire::in_session().update(call("c1")).ask_permission(1, "c1").update(status("c1", "in_progress"));
    assert_eq!(wire.rules(), [Rule::Permission]);
}

#[test]
fn a_question_in_the_middle_of_a_call_refuses_only_what_it_is_about() {
    let options = json!([{"optionId": "no", "name": "Reject", "kind": "reject_once"}]);
    let asked = |call: &str| {
        json!({"id": 1, "method": "session/request_permission", "params": {"sessionId": "ses_1",
            "toolCall": {"toolCallId": call, "status": "in_progress"}, "options": options}})
    };
    let running = || Wire::in_session().update(call("c1")).update(status("c1", "in_progress"));
    let wire = running().a(asked("c1")).update(status("c1", "in_progress")).choose(1, "no");
    assert_eq!(wire.update(status("c1", "completed")).rules(), []);
    assert_eq!(
        running().a(asked("c2")).choose(1, "no").rules(),
        [Rule::ToolCall],
        "it is about a known call"
    );
}

#[test]
fn a_withdrawn_question_refuses_nothing() {
    let wire = Wire::in_session()
        .update(call("c1"))
        .ask_permission(1, "c1")
        .a(json!({"method": "$/cancel_request", "params": {"requestId": 1}}))
        .c(json!({"id": 1, "result": {"outcome": {"outcome": "cancelled"}}}))
        .update(status("c1", "in_progress"));
    assert_eq!(wire.rules(), []);
}

#[test]
fn permission_for_an_unknown_call_is_found_except_after_a_resume() {
    assert_eq!(Wire::in_session().ask_permission(1, "c1").choose(1, "yes").rules(), [Rule::ToolCall]);
    let resumed = Wire::new()
        .c(json!({"id": 1, "method": "session/resume", "params": {"sessionId": "ses_1", "cwd": "/w"}}))
        .a(json!({"id": 1, "result": {}}))
        .ask_permission(1, "c1")
        .choose(1, "yes")
        .update(status("c1", "completed"));
    assert_eq!(resumed.rules(), []);
}

#[test]
fn the_agent_must_not_reuse_an_open_id_nor_cancel_what_it_never_asked() {
    let reused = Wire::in_session().update(call("c1")).ask_permission(1, "c1").ask_permission(1, "c1");
    assert_eq!(reused.rules(), [Rule::OneAnswer]);
    let cancelled = Wire::new().a(json!({"method": "$/cancel_request", "params": {"requestId": 4}}));
    assert_eq!(cancelled.rules(), [Rule::OneAnswer]);
}

#[test]
fn a_session_is_answered_before_it_is_updated() {
    let early = Wire::new()
        .c(json!({"id": 1, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}))
        .update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []}))
        .a(json!({"id": 1, "result": {"sessionId": "ses_1"}}));
    assert_eq!(early.rules(), [Rule::SessionOrder]);
}

#[test]
fn a_closed_session_is_silent_until_it_is_reopened() {
    let close = json!({"id": 2, "method": "session/close", "params": {"sessionId": "ses_1"}});
    let closed = || Wire::in_session().c(close.clone()).a(json!({"id": 2, "result": {}}));
    assert_eq!(closed().update(text("msg_1")).rules(), [Rule::SessionOrder]);
    assert_eq!(closed().c(load(3)).update(text("msg_1")).a(json!({"id": 3, "result": {}})).rules(), []);
}

#[test]
fn a_refused_load_opens_nothing() {
    let refused = Wire::new()
        .c(load(3))
        .a(json!({"id": 3, "error": {"code": -32002, "message": "unknown", "data": {"sessionId": "ses_1"}}}))
        .update(text("msg_1"));
    assert_eq!(refused.rules(), [Rule::SessionOrder]);
}

#[test]
fn an_unknown_session_is_named_in_the_error() {
    let wire = Wire::new().prompt(1).a(json!({"id": 1, "error": {"code": -32002, "message": "unknown"}}));
    assert_eq!(wire.rules(), [Rule::Schema]);
}

#[test]
fn impure_lines_are_found() {
    for line in [
        &b"starting up\n"[..],
        b"",
        b"[]",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"jsonrpc\":\"1.0\",\"method\":\"session/update\"}",
        b"\xff",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
    ] {
        let rules = Wire::new().raw_a(line).rules();
        assert_eq!(rules, [Rule::Purity], "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn invalid_payload_and_leaked_keys_are_found() {
    let invalid = Wire::in_session().update(json!({"sessionUpdate": "agent_message_chunk"}));
    assert_eq!(invalid.rules(), [Rule::Schema]);
    let mut leaking = text("msg_1");
    leaking["_meta"] = json!({"attache": {"duration_ms": 3}});
    assert_eq!(Wire::in_session().update(leaking).rules(), [Rule::SnakeCase]);
    let result = Wire::in_session().prompt(2).a(json!({"id": 2, "result": {"stop_reason": "end_turn"}}));
    assert_eq!(result.rules(), [Rule::Schema, Rule::SnakeCase]);
}

#[test]
fn the_agent_does_not_send_what_it_must_answer() {
    let wire = Wire::new().a(json!({"id": 1, "method": "logout", "params": {}}));
    assert_eq!(wire.rules(), [Rule::Schema]);
}

#[test]
fn an_update_above_the_clients_line_is_found() {
    let mut long = text("msg_1");
    long["content"]["text"] = "x".repeat(MAX_UPDATE_LINE_BYTES).into();
    assert_eq!(Wire::in_session().update(long).rules(), [Rule::LineLength]);
    let mut image = text("msg_1");
    image["content"] =
        json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(MAX_UPDATE_LINE_BYTES) });
    assert_eq!(Wire::in_session().update(image).rules(), []);
}

#[test]
fn only_a_well_behaved_client_is_blamed() {
    let bad = br#"{"jsonrpc":"2.0","method":"session/cancel","params":{}}"#;
    let mut strict = WireChecker::new(Client::WellBehaved);
    strict.feed(Direction::FromClient, bad);
    assert_eq!(strict.violations()[0].rule, Rule::Schema);
    assert_eq!(Wire::new().raw_c(bad).rules(), []);
}

proptest::proptest! {
    #[test]
    fn no_line_makes_it_panic(lines: Vec<(bool, Vec<u8>)>) {
        let mut checker = WireChecker::new(Client::Adversary);
        for (from_agent, line) in lines {
            checker.feed(if from_agent { Direction::FromAgent } else { Direction::FromClient }, &line);
        }
    }
}
