//! How the items of an answer end: with what the item itself says, or, if the answer ends first, with what we
//! received of it.

use attache_core::chunk::{Chunk, Rest, ToolMarks};
use attache_core::ports::StepEvent;
use serde_json::value::RawValue;

use super::items::{ItemEnd, OpenFunctionCall, OpenMessage, OpenReasoning, Thought};
use super::{Called, Refused, ResponsesDecoder, ResponsesState, push};
use crate::dialect::arguments;
use crate::limits::ITEM_ID_BYTES;
use crate::openai_responses::wire::OutputItem;

impl ResponsesDecoder {
    /// Ends an item: with what it says, or, at the end of the answer, with what we received of it.
    pub(super) fn end(
        &mut self,
        index: u64,
        item: &OutputItem<'_>,
        raw: &RawValue,
        ended: ItemEnd,
        out: &mut Vec<StepEvent>,
    ) {
        self.state = ResponsesState::Speaking;
        match &*item.kind {
            "message" => {
                let message = self.open.messages.remove(&index).unwrap_or_default();
                self.end_message(index, message, ended, Some(item), out);
            }
            "reasoning" => {
                let reasoning = self.open.reasonings.remove(&index).unwrap_or_default();
                self.end_reasoning(reasoning, ended, Some(item), out);
            }
            "function_call" => {
                let open = self.open.calls.remove(&index);
                let call = open.unwrap_or_else(|| self.begin_call(index, item));
                self.end_call(call, ended, Some(item), out);
            }
            _ => self.end_executed(index, item, raw, out),
        }
    }

    /// Ends all open items, because the answer has ended.
    pub(super) fn end_all(&mut self, ended: ItemEnd, out: &mut Vec<StepEvent>) {
        let open = std::mem::take(&mut self.open);
        for reasoning in open.reasonings.into_values() {
            self.end_reasoning(reasoning, ended, None, out);
        }
        for (index, message) in open.messages {
            self.end_message(index, message, ended, None, out);
        }
        for call in open.calls.into_values() {
            self.end_call(call, ended, None, out);
        }
        for executed in open.executed.into_values() {
            executed.give_up(out);
        }
    }

    pub(super) fn end_message(
        &mut self,
        index: u64,
        mut message: OpenMessage,
        ended: ItemEnd,
        item: Option<&OutputItem<'_>>,
        out: &mut Vec<StepEvent>,
    ) {
        for (number, content) in (0..).zip(item.and_then(|item| item.content.as_ref()).into_iter().flatten())
        {
            if !content.refusal.is_empty() {
                self.refused = Refused::Yes;
            }
            let text = if content.text.is_empty() { &content.refusal } else { &content.text };
            if !message.parts.contains_key(&number) && !text.is_empty() {
                let id = message.part(number, &mut self.streams, out);
                push(out, Chunk::text_delta(&id, &**text));
            }
            let annotations = content.annotations.as_ref().filter(|_| !message.cited);
            let source_of = if message.id.is_empty() { index.to_string() } else { message.id.clone() };
            for (place, annotation) in (0..).zip(annotations.into_iter().flatten()) {
                out.extend(self.source(&source_of, (number, place), annotation).map(StepEvent::Chunk));
            }
        }
        let phase = item.map(|item| item.phase.to_string()).filter(|phase| !phase.is_empty());
        let phase = phase.unwrap_or(message.phase);
        let rest = match ended {
            ItemEnd::Whole => self.mark(
                lasting_id(&message.id, item),
                (!phase.is_empty()).then_some(("phase", phase.as_str())),
            ),
            ItemEnd::Cut => Rest::none(),
        };
        for id in message.parts.into_values() {
            push(out, Chunk::TextEnd { id, rest: rest.clone() });
        }
    }

    pub(super) fn end_reasoning(
        &mut self,
        mut reasoning: OpenReasoning,
        ended: ItemEnd,
        item: Option<&OutputItem<'_>>,
        out: &mut Vec<StepEvent>,
    ) {
        if let Some(item) = item.filter(|_| reasoning.thoughts.is_empty()) {
            let summary = (0..).map(Thought::Summary).zip(item.summary.iter().flatten());
            let content = (0..).map(Thought::Text).zip(item.content.iter().flatten());
            for (thought, said) in summary.chain(content).filter(|(_, said)| !said.text.is_empty()) {
                reasoning.think(thought, said.text.to_string(), &mut self.streams, out);
            }
        }
        let told = item.map(|item| &*item.encrypted_content).filter(|content| !content.is_empty());
        let encrypted = told.unwrap_or(&reasoning.encrypted).to_owned();
        if ended == ItemEnd::Whole && !encrypted.is_empty() {
            // Reasoning without a summary still needs a part, without text, to carry the encrypted content.
            reasoning.open(&mut self.streams, out);
        }
        let rest = match ended {
            ItemEnd::Whole => self.mark(
                lasting_id(&reasoning.id, item),
                (!encrypted.is_empty()).then_some(("reasoningEncryptedContent", encrypted.as_str())),
            ),
            ItemEnd::Cut => Rest::none(),
        };
        if let Some(id) = reasoning.stream {
            push(out, Chunk::ReasoningEnd { id, rest });
        }
    }

    fn end_call(
        &mut self,
        call: OpenFunctionCall,
        ended: ItemEnd,
        item: Option<&OutputItem<'_>>,
        out: &mut Vec<StepEvent>,
    ) {
        let told = item.map(|item| &*item.arguments).filter(|text| !text.is_empty());
        let text = told.unwrap_or(&call.arguments);
        let name = item.map(|item| &*item.name).filter(|name| !name.is_empty()).unwrap_or(&call.name);
        if ended == ItemEnd::Cut {
            // The call stays open: the loop tells the model that it did not run.
            return;
        }
        self.called = Called::Yes;
        push(
            out,
            Chunk::ToolInputAvailable {
                call_id: call.call_id,
                tool_name: name.to_owned(),
                input: arguments(text),
                marks: ToolMarks::default(),
                rest: self.mark(lasting_id(&call.id, item), None),
            },
        );
    }
}

/// The item's id, if it is stable. The provider would later refuse an id that changes while the item streams,
/// or one that is too long.
fn lasting_id<'i>(begun: &'i str, item: Option<&'i OutputItem<'_>>) -> Option<&'i str> {
    let id = match item {
        Some(item) if begun.is_empty() || *begun == *item.id => &*item.id,
        Some(_) => return None,
        None => begun,
    };
    Some(id).filter(|id| !id.is_empty() && id.len() <= ITEM_ID_BYTES)
}
