//! The fold once more, the slow and obvious way, over plain JSON: searches instead of indexes, the whole input
//! read at every delta. What the reducer is compared with.

use attache_core::chunk::Chunk;
use attache_core::chunk::partial_json;
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    pub(crate) id: String,
    pub(crate) metadata: Option<Value>,
    pub(crate) parts: Vec<Value>,
    /// (type, stream id, index of the part) of what is open.
    open: Vec<(&'static str, String, usize)>,
    /// Call id → (start chunk, text so far).
    inputs: Map<String, Value>,
}

/// Adds one chunk; `Err` where a client of the AI SDK would stop.
pub(crate) fn apply(naive: &mut Naive, chunk: &Chunk) -> Result<(), ()> {
    let chunk = serde_json::to_value(chunk).unwrap();
    let text = |key: &str| chunk[key].as_str().unwrap_or_default().to_owned();
    match chunk["type"].as_str().unwrap() {
        "start" => {
            if let Some(id) = chunk["messageId"].as_str() {
                if id != naive.id {
                    *naive = Naive::default();
                }
                naive.id = id.to_owned();
            }
            merge_metadata(naive, &chunk["messageMetadata"]);
        }
        "message-metadata" | "finish" => merge_metadata(naive, &chunk["messageMetadata"]),
        "start-step" => naive.parts.push(json!({"type": "step-start"})),
        "finish-step" => naive.open.clear(),
        "text-start" => open(naive, "text", &chunk),
        "reasoning-start" => open(naive, "reasoning", &chunk),
        "text-delta" => grow(naive, "text", &chunk)?,
        "reasoning-delta" => grow(naive, "reasoning", &chunk)?,
        "text-end" => close(naive, "text", &chunk)?,
        "reasoning-end" => close(naive, "reasoning", &chunk)?,
        "file" => {
            naive.parts.push(only(&chunk, &["type", "mediaType", "url", "filename", "providerMetadata"]))
        }
        "source-url" => {
            naive.parts.push(only(&chunk, &["type", "sourceId", "url", "title", "providerMetadata"]))
        }
        "source-document" => naive
            .parts
            .push(only(&chunk, &["type", "sourceId", "mediaType", "title", "filename", "providerMetadata"])),
        "tool-input-start" => {
            naive.inputs.insert(text("toolCallId"), json!({"start": chunk, "text": ""}));
            let mut set = only(&chunk, &["inputEncoding", "title", "toolMetadata", "providerExecuted"]);
            set["state"] = json!("input-streaming");
            update(naive, &chunk, is_dynamic(&chunk), set, None);
        }
        "tool-input-delta" => {
            let input = naive.inputs.get_mut(&text("toolCallId")).ok_or(())?;
            let grown = input["text"].as_str().unwrap().to_owned() + &text("inputTextDelta");
            input["text"] = json!(grown);
            let start = input["start"].clone();
            let mut set = only(&start, &["inputEncoding", "title", "toolMetadata"]);
            set["state"] = json!("input-streaming");
            set["rawInput"] = json!(grown);
            if start["inputEncoding"] == "text" {
                set["input"] = json!(grown);
            } else if let Some(value) = partial_json::parse(&grown) {
                set["input"] = value;
            }
            let named = json!({"toolCallId": text("toolCallId"), "toolName": start["toolName"]});
            update(naive, &named, is_dynamic(&start), set, None);
        }
        "tool-input-available" => {
            let mut set = only(&chunk, &["input", "title", "toolMetadata", "providerExecuted"]);
            set["state"] = json!("input-available");
            update(naive, &chunk, is_dynamic(&chunk), set, None);
        }
        "tool-input-error" => {
            let held = step_calls(naive, &chunk).first().map(|at| naive.parts[*at]["type"] == "dynamic-tool");
            let dynamic = held.unwrap_or(is_dynamic(&chunk));
            let mut set = only(&chunk, &["errorText", "toolMetadata", "providerExecuted"]);
            set["state"] = json!("output-error");
            set[if dynamic { "input" } else { "rawInput" }] = chunk["input"].clone();
            update(naive, &chunk, dynamic, set, None);
        }
        "tool-approval-request" => {
            let at = find_call(naive, &chunk)?;
            let mut approval = json!({"id": chunk["approvalId"]});
            for (from, to) in
                [("approvalDescriptor", "descriptor"), ("attache", "attache"), ("signature", "signature")]
            {
                if !chunk[from].is_null() {
                    approval[to] = chunk[from].clone();
                }
            }
            if let Some(value) = chunk.get("inputSchemaInput") {
                approval["inputSchemaInput"] = value.clone();
            }
            naive.parts[at]["state"] = json!("approval-requested");
            naive.parts[at]["approval"] = approval;
        }
        "tool-output-denied" => {
            let at = find_call(naive, &chunk)?;
            naive.parts[at]["state"] = json!("output-denied");
        }
        "tool-output-available" => output(naive, &chunk, "output-available", &["output", "preliminary"])?,
        "tool-output-error" => output(naive, &chunk, "output-error", &["errorText"])?,
        "error" | "abort" => {}
        _ => data(naive, &chunk)?,
    }
    Ok(())
}

fn data(naive: &mut Naive, chunk: &Value) -> Result<(), ()> {
    if chunk["transient"] == true {
        let answer = &chunk["data"];
        if chunk["type"] == "data-approval" {
            let at = find_call(naive, &json!({"toolCallId": answer["call_id"]}))?;
            if naive.parts[at]["approval"]["id"] != answer["approval_id"] {
                return Err(());
            }
            naive.parts[at]["state"] = json!("approval-responded");
            naive.parts[at]["approval"]["approved"] = answer["approved"].clone();
        }
        return Ok(());
    }
    let same = |part: &&mut Value| {
        chunk.get("id").is_some() && part["type"] == chunk["type"] && part.get("id") == chunk.get("id")
    };
    match naive.parts.iter_mut().find(same) {
        Some(part) => part["data"] = chunk["data"].clone(),
        None => naive.parts.push(only(chunk, &["type", "id", "data"])),
    }
    Ok(())
}

fn only(chunk: &Value, keys: &[&str]) -> Value {
    let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), chunk.get(key)?.clone())));
    Value::Object(kept.collect())
}

fn is_dynamic(chunk: &Value) -> bool {
    chunk["dynamic"] == true
}

fn merge_metadata(naive: &mut Naive, new: &Value) {
    if new.is_null() {
        return;
    }
    match &mut naive.metadata {
        None => naive.metadata = Some(new.clone()),
        Some(held) => merge(held, new),
    }
}

fn merge(held: &mut Value, new: &Value) {
    let (Value::Object(old), Value::Object(new)) = (&mut *held, new) else {
        panic!("metadata of the tests are objects once they are merged");
    };
    for (key, value) in new {
        match old.get_mut(key) {
            Some(slot) if slot.is_object() && value.is_object() => merge(slot, value),
            _ => drop(old.insert(key.clone(), value.clone())),
        }
    }
}

fn open(naive: &mut Naive, kind: &'static str, chunk: &Value) {
    let mut part = json!({"type": kind, "text": "", "state": "streaming"});
    if kind == "reasoning" {
        part["id"] = chunk["id"].clone();
    }
    if let Some(metadata) = chunk.get("providerMetadata") {
        part["providerMetadata"] = metadata.clone();
    }
    let id = chunk["id"].as_str().unwrap();
    naive.open.retain(|(open, open_id, _)| (*open, open_id.as_str()) != (kind, id));
    naive.open.push((kind, id.to_owned(), naive.parts.len()));
    naive.parts.push(part);
}

fn opened<'a>(naive: &'a mut Naive, kind: &str, chunk: &Value) -> Result<&'a mut Value, ()> {
    let found = naive.open.iter().find(|(open, id, _)| *open == kind && chunk["id"] == id.as_str());
    let at = found.ok_or(())?.2;
    let part = &mut naive.parts[at];
    if let Some(metadata) = chunk.get("providerMetadata") {
        part["providerMetadata"] = metadata.clone();
    }
    Ok(part)
}

fn grow(naive: &mut Naive, kind: &str, chunk: &Value) -> Result<(), ()> {
    let part = opened(naive, kind, chunk)?;
    part["text"] = json!(part["text"].as_str().unwrap().to_owned() + chunk["delta"].as_str().unwrap());
    Ok(())
}

fn close(naive: &mut Naive, kind: &str, chunk: &Value) -> Result<(), ()> {
    opened(naive, kind, chunk)?["state"] = json!("done");
    naive.open.retain(|(open, id, _)| !(*open == kind && chunk["id"] == id.as_str()));
    Ok(())
}

fn is_call(part: &Value, chunk: &Value) -> bool {
    part.get("toolCallId").is_some() && part["toolCallId"] == chunk["toolCallId"]
}

/// Parts of the call since the last step-start.
fn step_calls(naive: &Naive, chunk: &Value) -> Vec<usize> {
    let step = naive.parts.iter().rposition(|part| part["type"] == "step-start").map_or(0, |at| at + 1);
    (step..naive.parts.len()).filter(|at| is_call(&naive.parts[*at], chunk)).collect()
}

fn find_call(naive: &Naive, chunk: &Value) -> Result<usize, ()> {
    let in_step = step_calls(naive, chunk).first().copied();
    in_step.or_else(|| naive.parts.iter().rposition(|part| is_call(part, chunk))).ok_or(())
}

fn output(naive: &mut Naive, chunk: &Value, state: &str, keys: &[&str]) -> Result<(), ()> {
    let at = find_call(naive, chunk)?;
    let held = naive.parts[at].clone();
    let dynamic = held["type"] == "dynamic-tool";
    let mut set = only(chunk, &[keys, &["toolMetadata", "providerExecuted"]].concat());
    set["state"] = json!(state);
    let mut kept = vec!["input"];
    if state == "output-error" && !dynamic {
        kept.push("rawInput");
    }
    for key in kept {
        if let Some(value) = held.get(key) {
            set[key] = value.clone();
        }
    }
    let name = if dynamic {
        held["toolName"].clone()
    } else {
        json!(held["type"].as_str().unwrap().strip_prefix("tool-").unwrap())
    };
    let mut named = only(chunk, &["toolCallId", "providerMetadata"]);
    named["toolName"] = name;
    update(naive, &named, dynamic, set, Some(at));
    Ok(())
}

/// Sets what `set` has and takes away the rest, save for title, metadata, providerExecuted and approval.
fn update(naive: &mut Naive, chunk: &Value, dynamic: bool, set: Value, held: Option<usize>) {
    let same_form = |at: &usize| (naive.parts[*at]["type"] == "dynamic-tool") == dynamic;
    let found = held.or_else(|| step_calls(naive, chunk).into_iter().find(same_form));
    let made = found.is_none();
    let at = found.unwrap_or_else(|| {
        naive.parts.push(json!({"toolCallId": chunk["toolCallId"]}));
        naive.parts.len() - 1
    });
    let part = naive.parts[at].as_object_mut().unwrap();
    if dynamic {
        part.insert("type".into(), json!("dynamic-tool"));
        part.insert("toolName".into(), chunk["toolName"].clone());
    } else {
        part.insert("type".into(), json!(format!("tool-{}", chunk["toolName"].as_str().unwrap())));
    }
    for key in ["input", "rawInput", "output", "errorText", "inputEncoding", "preliminary"] {
        part.shift_remove(key);
    }
    for (key, value) in set.as_object().unwrap() {
        if !(made && dynamic && key == "rawInput") {
            part.insert(key.clone(), value.clone());
        }
    }
    if let Some(metadata) = chunk.get("providerMetadata") {
        let result = set["state"] == "output-available" || set["state"] == "output-error";
        let key = if result { "resultProviderMetadata" } else { "callProviderMetadata" };
        part.insert(key.into(), metadata.clone());
    }
}
