//! Questions about tool calls, their answers and their results: everything after a call's input.

use serde_json::{Map, Value, json};

use super::{ReduceError, Reducer, Touched, replace_some, unknown};
use crate::chunk::{Rest, ToolMarks};
use crate::ids::CallId;
use crate::metadata::{EDITED, OWN_KEY};
use crate::part::{Part, ToolApproval, ToolPart, ToolState};

impl Reducer {
    pub(super) fn approval_request(
        &mut self,
        approval_id: &str,
        call_id: &CallId,
        rest: &Rest,
    ) -> Result<Touched, ReduceError> {
        let (index, tool) = self.call_mut("tool-approval-request", call_id)?;
        tool.state = ToolState::ApprovalRequested;
        tool.approval = Some(question(approval_id, rest));
        Ok(Touched::Part { index, ended: false })
    }

    pub(super) fn output(
        &mut self,
        call_id: &CallId,
        output: &Value,
        preliminary: Option<bool>,
        marks: &ToolMarks,
        rest: &Rest,
    ) -> Result<Touched, ReduceError> {
        let (index, tool) = self.settled_mut("tool-output-available", call_id, marks, rest)?;
        tool.state = ToolState::OutputAvailable;
        tool.output = Some(output.clone());
        tool.error_text = None;
        tool.raw_input = None;
        tool.preliminary = preliminary;
        Ok(Touched::Part { index, ended: preliminary != Some(true) })
    }

    pub(super) fn output_error(
        &mut self,
        call_id: &CallId,
        error_text: &str,
        marks: &ToolMarks,
        rest: &Rest,
    ) -> Result<Touched, ReduceError> {
        let (index, tool) = self.settled_mut("tool-output-error", call_id, marks, rest)?;
        tool.state = ToolState::OutputError;
        tool.output = None;
        tool.error_text = Some(error_text.to_owned());
        tool.preliminary = None;
        if tool.dynamic {
            tool.raw_input = None;
        }
        Ok(Touched::Part { index, ended: true })
    }

    pub(super) fn output_denied(&mut self, call_id: &CallId) -> Result<Touched, ReduceError> {
        let (index, tool) = self.call_mut("tool-output-denied", call_id)?;
        tool.state = ToolState::OutputDenied;
        Ok(Touched::Part { index, ended: true })
    }

    /// The answer to a question, which the AI SDK has no chunk for. A transient `data-approval` of another
    /// shape comes from another program and does not change a part.
    pub(super) fn approval_answer(&mut self, data: &Value) -> Result<Touched, ReduceError> {
        let text = |key| data.get(key).and_then(Value::as_str);
        let (Some(approval_id), Some(call_id), Some(approved)) =
            (text("approval_id"), text("call_id"), data.get("approved").and_then(Value::as_bool))
        else {
            return Ok(Touched::Nothing);
        };
        let (index, tool) = self.call_mut("data-approval", &CallId::new(call_id))?;
        let Some(approval) = tool.approval.as_mut().filter(|approval| approval.id == approval_id) else {
            let (id, approval_id) = (call_id.to_owned(), approval_id.to_owned());
            return Err(ReduceError::NoQuestion { id, approval_id });
        };
        approval.approved = Some(approved);
        approval.reason = text("reason").map(str::to_owned);
        // Allowed with other arguments: those are the ones it has from now on.
        if let Some(input) = data.get("input") {
            let ours = approval.unknown.entry(OWN_KEY).or_insert_with(|| json!({}));
            if let Some(ours) = ours.as_object_mut() {
                ours.insert(EDITED.to_owned(), true.into());
            }
            tool.input = Some(input.clone());
        }
        tool.state = ToolState::ApprovalResponded;
        // A denied call gets no result chunk that could carry the decision.
        if let Some(decision) = data.get("decision") {
            let metadata = tool.tool_metadata.get_or_insert_with(|| json!({}));
            let shown = metadata.as_object_mut().map(|all| all.entry(OWN_KEY).or_insert_with(|| json!({})));
            if let Some(shown) = shown.and_then(Value::as_object_mut) {
                shown.insert("decision".to_owned(), decision.clone());
            }
        }
        Ok(Touched::Part { index, ended: false })
    }

    fn call_mut(
        &mut self,
        chunk: &'static str,
        call_id: &CallId,
    ) -> Result<(usize, &mut ToolPart), ReduceError> {
        let missing = || ReduceError::NoCall { chunk, id: call_id.to_string() };
        let index = self.call_index(call_id).ok_or_else(missing)?;
        let tool = self.part_mut(index).and_then(Part::tool_mut).ok_or_else(missing)?;
        Ok((index, tool))
    }

    /// The part that a result belongs to, with the fields set that every result sets.
    fn settled_mut(
        &mut self,
        chunk: &'static str,
        call_id: &CallId,
        marks: &ToolMarks,
        rest: &Rest,
    ) -> Result<(usize, &mut ToolPart), ReduceError> {
        self.read_live_input(call_id);
        let (index, tool) = self.call_mut(chunk, call_id)?;
        tool.input_encoding = None;
        tool.provider_executed = marks.provider_executed.or(tool.provider_executed);
        replace_some(&mut tool.tool_metadata, rest.tool_metadata());
        replace_some(&mut tool.result_provider_metadata, rest.provider_metadata());
        Ok((index, tool))
    }
}

fn question(approval_id: &str, rest: &Rest) -> ToolApproval {
    let mut kept = Map::new();
    if let Some(keys) = unknown(rest) {
        let present = |key: &str| keys.get(key).filter(|value| !value.is_null()).cloned();
        kept.extend(present("approvalDescriptor").map(|value| ("descriptor".to_owned(), value)));
        // Null is kept: a schema may allow it as input.
        kept.extend(keys.get("inputSchemaInput").map(|value| ("inputSchemaInput".to_owned(), value.clone())));
        kept.extend(present(OWN_KEY).map(|value| (OWN_KEY.to_owned(), value)));
        kept.extend(present("signature").map(|value| ("signature".to_owned(), value)));
    }
    ToolApproval { id: approval_id.to_owned(), approved: None, reason: None, unknown: kept }
}
