//! One step of the assistant as items. What only its author understands (encrypted reasoning, item ids) goes
//! back to its author alone, and only complete: the provider refuses reasoning without the item that followed
//! it, and an item by its id without the reasoning before it.

use std::borrow::Cow;

use attache_core::part::{Part, Passage, ToolPart, ToolState};
use attache_core::ports::model::ModelInfo;
use serde_json::{Map, Value};

use super::items::{InputBlock, InputContent, InputItem, ResponsesWriter, call_id, call_name, media_block};
use crate::compose::{Fetches, PromptPiece, call_input, call_result, file_data, piece};

/// What the decoder stored beside a part, if this model is its author.
#[derive(Clone, Copy, Default)]
struct ItemMark<'a> {
    item_id: Option<&'a str>,
    phase: Option<&'a str>,
    encrypted: Option<&'a str>,
}

/// One item to write, in the order of the parts.
enum StepItem<'a> {
    Reasoning {
        text: &'a str,
        encrypted: &'a str,
    },
    Message(Vec<Cow<'a, str>>),
    Call(&'a ToolPart),
    /// A call that the provider ran.
    Executed(&'a Map<String, Value>),
    /// A picture that the model itself made, and its base64.
    Picture {
        part: &'a Part,
        data: String,
    },
}

struct MarkedItem<'a> {
    said: StepItem<'a>,
    /// `None` if another model made it, or if it was cut.
    mark: Option<ItemMark<'a>>,
}

impl ResponsesWriter<'_> {
    pub(super) fn step(&self, passage: &Passage, json: &mut Vec<u8>) {
        let mut unsendable = 0;
        let mut items: Vec<MarkedItem<'_>> = Vec::new();
        for part in &passage.parts {
            match self.said(part) {
                Some(marked) => join(&mut items, marked),
                None if matches!(part, Part::Reasoning { .. }) => unsendable += 1,
                None => {}
            }
        }
        let mut plan = SendPlan::of(&items, unsendable);
        if plan.ids == ItemIds::Left {
            // Without ids, we cannot refer to a picture, so describe it.
            for item in &mut items {
                if let StepItem::Picture { part, .. } = item.said {
                    *item = MarkedItem { said: self.described(part), mark: None };
                }
            }
            plan = SendPlan::of(&items, unsendable);
        }
        for (item, sent) in items.iter().zip(&plan.sent) {
            if *sent {
                item.write(plan.ids, json);
            }
        }
        for tool in passage.parts.iter().filter_map(Part::tool) {
            if tool.provider_executed != Some(true) {
                self.output(tool, json);
            }
        }
    }

    fn said<'p>(&self, part: &'p Part) -> Option<MarkedItem<'p>> {
        match part {
            Part::Text { text, provider_metadata, .. } => {
                let said = StepItem::Message(vec![Cow::Borrowed(text)]);
                (!text.is_empty()).then(|| MarkedItem { said, mark: self.mark(provider_metadata.as_ref()) })
            }
            Part::Reasoning { text, provider_metadata, .. } => {
                let mark = self.mark(provider_metadata.as_ref())?;
                let encrypted = mark.encrypted?;
                Some(MarkedItem { said: StepItem::Reasoning { text, encrypted }, mark: Some(mark) })
            }
            Part::Tool(tool) if tool.provider_executed == Some(true) => {
                let mark = self.mark(tool.result_provider_metadata.as_ref())?;
                let item = tool.output.as_ref()?.as_object()?;
                let said = StepItem::Executed(item);
                (tool.state == ToolState::OutputAvailable).then_some(MarkedItem { said, mark: Some(mark) })
            }
            Part::Tool(tool) => {
                let mark = self.mark(tool.call_provider_metadata.as_ref());
                Some(MarkedItem { said: StepItem::Call(tool), mark })
            }
            Part::File { provider_metadata, .. } => {
                let mark = self.mark(provider_metadata.as_ref()).filter(|mark| mark.item_id.is_some());
                let made = file_data(part, self.blobs).filter(|_| mark.is_some());
                let picture = |data: &str| StepItem::Picture { part, data: data.to_owned() };
                let said = made.map_or_else(|| self.described(part), picture);
                Some(MarkedItem { said, mark })
            }
            Part::StepStart | Part::SourceUrl { .. } | Part::SourceDocument { .. } | Part::Data { .. } => {
                None
            }
        }
    }

    /// A description of another model's file: its name, type and size.
    fn described<'p>(&self, part: &'p Part) -> StepItem<'p> {
        let blind = ModelInfo { images: false, audio: false, pdf: false, ..self.info.clone() };
        let text = match piece(part, &blind, self.blobs, Fetches::default()) {
            Some(PromptPiece::Text(text)) => text.into_owned(),
            Some(PromptPiece::Media(_)) | None => "[attachment]".to_owned(),
        };
        StepItem::Message(vec![Cow::Owned(text)])
    }

    /// The one result of a call. The wire has no mark for failures, so the text says it.
    fn output(&self, tool: &ToolPart, json: &mut Vec<u8>) {
        let result = call_result(tool, &self.info, self.blobs);
        let text = if result.failed { Cow::Owned(format!("error: {}", result.text)) } else { result.text };
        let output = match &result.picture {
            Some(media) => InputContent::Blocks(vec![
                InputBlock::InputText { text: Cow::Borrowed(&text) },
                media_block(media),
            ]),
            None => InputContent::Plain(&text),
        };
        InputItem::FunctionCallOutput { call_id: call_id(&tool.call_id), output }.append_to(json);
    }

    fn mark<'p>(&self, metadata: Option<&'p Value>) -> Option<ItemMark<'p>> {
        let ours = metadata?.get("openai")?;
        let text = |key: &str| ours.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        (text("by") == Some(self.author.as_str())).then(|| ItemMark {
            item_id: text("itemId"),
            phase: text("phase"),
            encrypted: text("reasoningEncryptedContent"),
        })
    }
}

/// Adds a part; two parts of one message become one item.
fn join<'a>(items: &mut Vec<MarkedItem<'a>>, next: MarkedItem<'a>) {
    if let Some(last) = items.last_mut()
        && last.item_id().is_some()
        && last.item_id() == next.item_id()
        && let (StepItem::Message(texts), StepItem::Message(more)) = (&mut last.said, &next.said)
    {
        texts.extend(more.iter().cloned());
        return;
    }
    items.push(next);
}

/// What we send of a step, and how.
struct SendPlan {
    sent: Vec<bool>,
    ids: ItemIds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemIds {
    Sent,
    Left,
}

impl SendPlan {
    fn of(items: &[MarkedItem<'_>], unsendable: usize) -> Self {
        // We send reasoning only if the item it led to follows it, complete and by the same author.
        let mut followed = false;
        let (mut thought, mut dropped) = (0, unsendable);
        let mut sent: Vec<bool> = Vec::with_capacity(items.len());
        for item in items.iter().rev() {
            if matches!(item.said, StepItem::Reasoning { .. }) {
                thought += 1;
                dropped += usize::from(!followed);
                sent.push(followed);
            } else {
                followed = item.mark.is_some();
                sent.push(true);
            }
        }
        sent.reverse();
        // With an id, the provider expects the reasoning before the item; without one, it takes any item.
        let ids = if thought > 0 && dropped == 0 { ItemIds::Sent } else { ItemIds::Left };
        Self { sent, ids }
    }
}

impl<'a> MarkedItem<'a> {
    fn item_id(&self) -> Option<&'a str> {
        self.mark.and_then(|mark| mark.item_id)
    }

    fn write(&self, ids: ItemIds, json: &mut Vec<u8>) {
        let mark = self.mark.unwrap_or_default();
        let id = mark.item_id.filter(|_| ids == ItemIds::Sent);
        match &self.said {
            StepItem::Reasoning { text, encrypted } => {
                let summary = (!text.is_empty()).then_some(InputBlock::SummaryText { text });
                let summary = summary.into_iter().collect();
                // Always with its id, which belongs to the encrypted content.
                InputItem::Reasoning { id: mark.item_id, summary, encrypted_content: encrypted }
                    .append_to(json);
            }
            StepItem::Message(texts) => {
                let blocks =
                    texts.iter().map(|text| InputBlock::OutputText { text, annotations: [] }).collect();
                let (content, status) = (InputContent::Blocks(blocks), id.map(|_| "completed"));
                InputItem::Message { id, role: "assistant", status, content, phase: mark.phase }
                    .append_to(json);
            }
            StepItem::Call(tool) => {
                let (call_id, name) = (call_id(&tool.call_id), call_name(&tool.tool_name));
                let arguments = call_input(tool).to_string();
                InputItem::FunctionCall { id, call_id, name, arguments }.append_to(json);
            }
            StepItem::Executed(item) => {
                let kept = item.iter().filter(|(key, _)| ids == ItemIds::Sent || *key != "id");
                let item = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
                InputItem::AsItCame(&Value::Object(item)).append_to(json);
            }
            StepItem::Picture { data: result, .. } => {
                if let Some(id) = id {
                    InputItem::ImageGenerationCall { id, status: "completed", result }.append_to(json);
                }
            }
        }
    }
}
