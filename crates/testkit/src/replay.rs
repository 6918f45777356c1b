//! Compares what a client was shown live with what a later load tells it (I1, I7). Knows updates, not the
//! store.
//!
//! Both sides are reduced to a [`Transcript`]: adjacent text of one message joined, one final state per tool
//! call, the latest plan, mode, title and usage; what is transient by contract is left out.

use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    items: Vec<Item>,
    /// The latest of each kind that replaces its predecessor, by `sessionUpdate`.
    latest: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Text {
        /// `agent_message_chunk`, `agent_thought_chunk` or `user_message_chunk`.
        kind: String,
        message_id: Option<String>,
        text: String,
    },
    /// A chunk that is no text: image, audio, resource, link.
    Content {
        kind: String,
        message_id: Option<String>,
        content: Value,
    },
    ToolCall {
        id: String,
        state: Map<String, Value>,
    },
}

/// Whose prompts the transcript holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserMessages {
    Kept,
    /// The sender of a prompt is not sent its own words; leave them out of both sides.
    LeftOut,
}

impl Transcript {
    /// `updates`: the `update` objects of `session/update` notifications of one session, in order.
    pub fn of<'a>(updates: impl IntoIterator<Item = &'a Value>, user_messages: UserMessages) -> Self {
        let mut transcript = Self::default();
        for update in updates {
            transcript.add(update, user_messages);
        }
        transcript
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// I7: a finished session loads as it was shown.
    pub fn must_equal(&self, loaded: &Transcript) -> Result<(), String> {
        for (index, pair) in self.items.iter().zip(&loaded.items).enumerate() {
            if !pair.0.is_told_as(pair.1) {
                return Err(format!(
                    "item {index} was shown as\n  {:?}\nbut loads as\n  {:?}",
                    pair.0, pair.1
                ));
            }
        }
        let (shown, told) = (self.items.len(), loaded.items.len());
        if shown > told {
            return Err(format!("item {told} was shown but not loaded:\n  {:?}", self.items[told]));
        }
        if told > shown {
            return Err(format!("item {shown} was loaded but never shown:\n  {:?}", loaded.items[shown]));
        }
        self.latest_must_equal(loaded)
    }

    /// I1: all that was shown before a crash is there afterwards, in order; the load may know more.
    pub fn must_be_within(&self, loaded: &Transcript) -> Result<(), String> {
        let mut rest = loaded.items.iter();
        for (index, shown) in self.items.iter().enumerate() {
            if !rest.any(|told| shown.is_within(told)) {
                let near = loaded.items.iter().find(|told| told.same_place(shown));
                return Err(format!(
                    "item {index} was shown as\n  {shown:?}\nbut is lost or out of order; nearest:\n  {near:?}"
                ));
            }
        }
        Ok(())
    }

    fn latest_must_equal(&self, loaded: &Transcript) -> Result<(), String> {
        for (kind, shown) in &self.latest {
            match loaded.latest.get(kind) {
                Some(told) if told == shown => {}
                Some(told) => return Err(format!("{kind} was shown as {shown} but loads as {told}")),
                None => return Err(format!("{kind} was shown as {shown} but not loaded")),
            }
        }
        Ok(())
    }

    fn add(&mut self, update: &Value, user_messages: UserMessages) {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "user_message_chunk" if user_messages == UserMessages::LeftOut => {}
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                self.add_chunk(kind, update)
            }
            "tool_call" | "tool_call_update" => self.add_tool_call(update),
            "plan" | "current_mode_update" | "session_info_update" | "usage_update" => {
                self.latest.insert(kind.to_owned(), update.clone());
            }
            // Offers of this connection (commands, options) and notices are not part of the conversation.
            _ => {}
        }
    }

    fn add_chunk(&mut self, kind: &str, update: &Value) {
        if is_transient(update) {
            return;
        }
        let message_id = update["messageId"].as_str().map(str::to_owned);
        let content = &update["content"];
        let Some(text) = content["text"].as_str().filter(|_| content["type"] == "text") else {
            let content = content.clone();
            self.items.push(Item::Content { kind: kind.to_owned(), message_id, content });
            return;
        };
        if let Some(Item::Text { kind: last_kind, message_id: last_id, text: joined }) = self.items.last_mut()
            && last_kind == kind
            && *last_id == message_id
        {
            joined.push_str(text);
            return;
        }
        self.items.push(Item::Text { kind: kind.to_owned(), message_id, text: text.to_owned() });
    }

    fn add_tool_call(&mut self, update: &Value) {
        let (Some(id), Some(fields)) = (update["toolCallId"].as_str(), update.as_object()) else { return };
        // A call of another session that was only asked about here.
        if update["_meta"]["attache"]["transient"] == true {
            return;
        }
        let known = self.items.iter_mut().rev().find_map(|item| match item {
            Item::ToolCall { id: known, state } if known == id => Some(state),
            Item::ToolCall { .. } | Item::Text { .. } | Item::Content { .. } => None,
        });
        // The protocol leaves a pending status out or in.
        let pending = || Map::from_iter([("status".to_owned(), Value::from("pending"))]);
        let state = match known {
            Some(state) => state,
            None => {
                self.items.push(Item::ToolCall { id: id.to_owned(), state: pending() });
                match self.items.last_mut() {
                    Some(Item::ToolCall { state, .. }) => state,
                    Some(Item::Text { .. } | Item::Content { .. }) | None => return,
                }
            }
        };
        let live_progress = update["status"] == "in_progress";
        for (key, value) in fields {
            let passing = live_progress && matches!(key.as_str(), "content" | "rawOutput");
            let names_it = matches!(key.as_str(), "sessionUpdate" | "toolCallId");
            if passing || names_it || value.is_null() {
                continue;
            }
            state.insert(key.clone(), value.clone());
        }
        // Hints ride along for the moment; what counts is in the fields the protocol names.
        state.remove("_meta");
        state.sort_keys();
    }
}

impl Item {
    /// The same, but for a terminal: only who opened it is shown it, all others what it printed.
    fn is_told_as(&self, told: &Item) -> bool {
        let (Item::ToolCall { id, state }, Item::ToolCall { id: told_id, state: told_state }) = (self, told)
        else {
            return self == told;
        };
        let mut shown = state.clone();
        let content = shown.get("content").and_then(Value::as_array);
        if content.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "terminal")) {
            shown.insert("content".to_owned(), told_state.get("content").cloned().unwrap_or_default());
        }
        id == told_id && shown == *told_state
    }

    fn is_within(&self, told: &Item) -> bool {
        match (self, told) {
            (Item::Text { text: shown, .. }, Item::Text { text, .. }) => {
                self.same_place(told) && text.starts_with(shown.as_str())
            }
            (Item::ToolCall { state: shown, .. }, Item::ToolCall { state, .. }) => {
                let had_ended =
                    matches!(shown.get("status").and_then(Value::as_str), Some("completed" | "failed"));
                self.same_place(told) && (!had_ended || shown == state || self.is_told_as(told))
            }
            _ => self == told,
        }
    }

    fn same_place(&self, other: &Item) -> bool {
        match (self, other) {
            (Item::Text { kind, message_id, .. }, Item::Text { kind: kind2, message_id: id2, .. }) => {
                kind == kind2 && message_id == id2
            }
            (Item::ToolCall { id, .. }, Item::ToolCall { id: id2, .. }) => id == id2,
            _ => self == other,
        }
    }
}

/// Told for the moment and not replayed: marked so, or a chunk that belongs to no stored message.
fn is_transient(update: &Value) -> bool {
    update["_meta"]["attache"]["transient"] == true || update["messageId"].is_null()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(message: &str, text: &str) -> Value {
        json!({"sessionUpdate": "agent_message_chunk", "messageId": message,
            "content": {"type": "text", "text": text}})
    }
    fn call(id: &str) -> Value {
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "Read", "status": "pending"})
    }
    fn update(id: &str, status: &str, output: &str) -> Value {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
            "content": [{"type": "content", "content": {"type": "text", "text": output}}]})
    }
    fn transcript(updates: &[Value]) -> Transcript {
        Transcript::of(updates, UserMessages::LeftOut)
    }
    fn live() -> Vec<Value> {
        vec![
            text("m1", "Hel"),
            text("m1", "lo"),
            call("c1"),
            update("c1", "in_progress", "half"),
            update("c1", "completed", "whole"),
            text("m1", " done"),
        ]
    }

    #[test]
    fn joins_and_progress_do_not_matter() {
        let loaded = [
            text("m1", "Hello"),
            call("c1"),
            update("c1", "completed", "whole"),
            text("m1", " do"),
            text("m1", "ne"),
        ];
        assert_eq!(transcript(&live()).must_equal(&transcript(&loaded)), Ok(()));
        assert_eq!(transcript(&live()).must_be_within(&transcript(&loaded)), Ok(()));
    }

    #[test]
    fn a_lost_chunk_is_found_wherever_it_was() {
        for lost in [0, 1, 4, 5] {
            let mut loaded = live();
            loaded.remove(lost);
            assert!(transcript(&live()).must_equal(&transcript(&loaded)).is_err(), "chunk {lost} (I7)");
            assert!(transcript(&live()).must_be_within(&transcript(&loaded)).is_err(), "chunk {lost} (I1)");
        }
    }

    #[test]
    fn order_and_owner_matter() {
        let mut swapped = live();
        swapped.swap(1, 2);
        assert!(transcript(&live()).must_equal(&transcript(&swapped)).is_err());
        let renamed: Vec<Value> = live()
            .into_iter()
            .map(|mut update| {
                if update["messageId"] == "m1" {
                    update["messageId"] = "m2".into();
                }
                update
            })
            .collect();
        assert!(transcript(&live()).must_equal(&transcript(&renamed)).is_err());
        assert!(transcript(&live()).must_be_within(&transcript(&renamed)).is_err());
    }

    #[test]
    fn a_load_may_know_more_after_a_crash_but_not_otherwise() {
        let shown = [text("m1", "Hel"), call("c1")];
        let loaded = [text("m1", "Hello"), call("c1"), update("c1", "failed", "aborted"), text("m2", "x")];
        assert_eq!(transcript(&shown).must_be_within(&transcript(&loaded)), Ok(()));
        assert!(transcript(&shown).must_equal(&transcript(&loaded)).is_err());
    }

    #[test]
    fn a_result_that_was_shown_must_not_change() {
        let shown = [call("c1"), update("c1", "completed", "whole")];
        let loaded = [call("c1"), update("c1", "failed", "aborted")];
        assert!(transcript(&shown).must_be_within(&transcript(&loaded)).is_err());
    }

    #[test]
    fn the_latest_title_and_usage_must_come_back() {
        let usage = |used: u64| json!({"sessionUpdate": "usage_update", "used": used, "size": 1000});
        let live = transcript(&[usage(1), usage(2)]);
        assert_eq!(live.must_equal(&transcript(&[usage(2)])), Ok(()));
        assert!(live.must_equal(&transcript(&[usage(1)])).is_err());
        assert!(live.must_equal(&transcript(&[])).is_err());
    }

    #[test]
    fn transient_lines_are_nobodys_loss() {
        let mut transient = text("m1", "retrying…");
        transient["_meta"] = json!({"attache": {"transient": true}});
        let nobodys =
            json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "retrying"}});
        assert_eq!(transcript(&[transient, nobodys]).must_equal(&transcript(&[])), Ok(()));
    }

    #[test]
    fn prompts_count_when_they_are_asked_for() {
        let prompt = json!({"sessionUpdate": "user_message_chunk", "messageId": "m0",
            "content": {"type": "text", "text": "hi"}});
        let with = Transcript::of([&prompt], UserMessages::Kept);
        assert!(with.must_equal(&Transcript::default()).is_err());
        assert_eq!(transcript(&[prompt]), Transcript::default());
    }
}
