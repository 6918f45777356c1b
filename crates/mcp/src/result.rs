//! What a server answered to a call, as the model and the client get it: text cut and kept, pictures as
//! pictures, everything else as a file or a name. An unknown kind is shown as it is.

use std::path::{Path, PathBuf};

use attache_core::legible::{visible, visible_block};
use attache_core::ports::tool::{FoundPicture, Presentation, Shown, ToolOutcome, ToolRuntime};
use attache_core::prompt::sniff;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::bounded::{self, cut};
use crate::limits::{RESULT_ITEMS, TITLE_CHARACTERS};
use crate::listing::shortened;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'a> {
    #[serde(default, borrow)]
    content: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
}

/// One piece of a result. All fields of all kinds: a server that leaves one out is still understood.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResultItem {
    r#type: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    resource: Option<ItemResource>,
    uri: Option<String>,
    name: Option<String>,
    description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ItemResource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

/// A result as it is collected.
#[derive(Default)]
struct ResultParts {
    /// For the model and the client alike.
    text: String,
    picture: Option<FoundPicture>,
    shown: Vec<Shown>,
}

pub(crate) async fn outcome(
    answer: &RawValue,
    tool: &str,
    mut presentation: Presentation,
    runtime: &ToolRuntime,
) -> ToolOutcome {
    let result: WireResult<'_> = match serde_json::from_str(answer.get()) {
        Ok(result) => result,
        Err(error) => {
            let text = format!("{tool}: the server's answer is not understood: {error}");
            return ToolOutcome::Error { text, presentation: Some(presentation) };
        }
    };
    let scratch = &runtime.site.workspace.scratch;
    let mut gathered = ResultParts::default();
    for item in result.content.iter().take(RESULT_ITEMS) {
        gathered.item(item, tool, scratch).await;
    }
    if result.content.len() > RESULT_ITEMS {
        gathered.line(&format!("[{} more pieces are left out]", result.content.len() - RESULT_ITEMS));
    }
    // Servers repeat it as text for clients that do not know it.
    if let Some(structured) = result.structured_content.filter(|_| gathered.text.is_empty()) {
        gathered.line(&pretty(structured));
    }
    let ResultParts { text, picture, shown } = gathered;
    let text = cut(text, runtime.result_bytes, scratch, &format!("{tool}.txt")).await;
    // The text of a failure reaches the client with the failure itself.
    if !text.text.is_empty() && !result.is_error {
        let shown = visible_block(&text.text);
        presentation.content.push(Shown::Text { text: fenced(&shown) });
    }
    presentation.content.extend(shown);
    let metadata = presentation.metadata.get_or_insert_default();
    metadata.truncated = text.whole.is_some();
    metadata.output_path = text.whole;
    match (result.is_error, picture) {
        (true, _) => {
            let text =
                if text.text.is_empty() { format!("{tool}: the server says it failed") } else { text.text };
            ToolOutcome::Error { text, presentation: Some(presentation) }
        }
        (false, Some(found)) => {
            ToolOutcome::Picture { found: FoundPicture { text: text.text, ..found }, presentation }
        }
        (false, None) => {
            let text = if text.text.is_empty() { "(no output)".to_owned() } else { text.text };
            ToolOutcome::Output { data: Value::String(text), presentation }
        }
    }
}

impl ResultParts {
    fn line(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    async fn item(&mut self, raw: &RawValue, tool: &str, scratch: &Path) {
        let item: ResultItem = serde_json::from_str(raw.get()).unwrap_or_default();
        let kind = item.r#type.clone();
        match (kind.as_str(), item) {
            ("text", ResultItem { text: Some(text), .. }) => self.line(&text),
            ("image" | "audio", ResultItem { data: Some(data), mime_type, .. }) => {
                self.media(&data, mime_type.as_deref(), tool, scratch).await;
            }
            ("resource", ResultItem { resource: Some(resource), .. }) => {
                self.resource(resource, tool, scratch).await;
            }
            ("resource_link", ResultItem { uri: Some(uri), name, description, mime_type, .. }) => {
                let name = shortened(name.as_deref().unwrap_or(&uri), TITLE_CHARACTERS);
                let about: Vec<String> = [mime_type, description]
                    .into_iter()
                    .flatten()
                    .map(|text| shortened(&text, TITLE_CHARACTERS))
                    .collect();
                let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
                self.line(&format!("[resource {name}: {}]{about}", visible(&uri)));
            }
            (_, _) => self.line(&pretty(raw)),
        }
    }

    async fn resource(&mut self, resource: ItemResource, tool: &str, scratch: &Path) {
        let uri = visible(&resource.uri);
        match (resource.text, resource.blob) {
            (Some(text), _) => self.line(&format!("[resource {uri}]\n{text}")),
            (None, Some(blob)) => {
                self.line(&format!("[resource {uri}]"));
                self.media(&blob, resource.mime_type.as_deref(), tool, scratch).await;
            }
            (None, None) => self.line(&format!("[resource {uri}]")),
        }
    }

    /// A picture goes to the model, the first one; all else is kept in a file that is named.
    async fn media(&mut self, data: &str, mime: Option<&str>, tool: &str, scratch: &Path) {
        let Ok(bytes) = STANDARD.decode(data.trim()) else {
            return self.line("[a file that is not valid base64 was left out]");
        };
        let known = sniff::media_type(&bytes);
        let said = known.or(mime).unwrap_or("application/octet-stream");
        let said: String = shortened(said, TITLE_CHARACTERS);
        let size = bytes.len();
        let path = match keep(&bytes, tool, &said, scratch).await {
            Ok(path) => path,
            Err(error) => {
                return self.line(&format!("[{said}, {size} bytes: it could not be kept: {error}]"));
            }
        };
        match (known, &self.picture) {
            (Some(mime @ ("image/png" | "image/jpeg" | "image/gif" | "image/webp")), None) => {
                self.picture = Some(FoundPicture { path, mime, bytes, text: String::new() });
            }
            (_, _) => {
                let hint = if said.starts_with("image/") { "; view_image shows it" } else { "" };
                self.line(&format!("[{said}, {size} bytes, in {}{hint}]", path.display()));
                self.shown.push(Shown::Link { path, mime: said, size: size as u64 });
            }
        }
    }
}

async fn keep(bytes: &[u8], tool: &str, mime: &str, scratch: &Path) -> std::io::Result<PathBuf> {
    let end: String =
        mime.rsplit('/').next().unwrap_or("bin").chars().filter(char::is_ascii_alphanumeric).collect();
    let end = if end.is_empty() || end.len() > 8 { "bin".to_owned() } else { end };
    let (bytes, scratch, file) = (bytes.to_vec(), scratch.to_owned(), format!("{tool}.{end}"));
    let saving = tokio::task::spawn_blocking(move || bounded::save(&scratch, &file, &bytes));
    saving.await.map_err(std::io::Error::other)?
}

fn pretty(raw: &RawValue) -> String {
    // Only what is small enough to be read is laid out.
    let small = Some(raw.get()).filter(|text| text.len() <= 64 * 1024);
    let value: Option<Value> = small.and_then(|text| serde_json::from_str(text).ok());
    let laid_out = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    laid_out.unwrap_or_else(|| raw.get().to_owned())
}

/// As a block of Markdown that nothing in it can leave.
pub(crate) fn fenced(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}
