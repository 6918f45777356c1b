//! The slash commands about the session itself: its usage, and an export to a file.

use std::io::{self, Write};

use super::Session;
use crate::export::{self, ExportError, ExportSources, ExportStyle, Format};
use crate::hub::HubError;
use crate::limits::EXPORTED_BYTES;

pub(crate) async fn usage(session: &mut Session, _arguments: &str) -> Result<String, HubError> {
    let totals = session.read_record().await?.row.totals;
    let rows = [
        ("Input", totals.prompt_tokens),
        ("Output", totals.completion_tokens),
        ("Reasoning", totals.reasoning_tokens),
        ("Read from the cache", totals.cache_read),
        ("Written to the cache", totals.cache_write),
    ];
    let mut lines = vec!["| | Tokens |".to_owned(), "|---|---:|".to_owned()];
    lines.extend(rows.iter().map(|(name, count)| format!("| {name} | {count} |")));
    lines.push(format!("| **Total** | {} |", rows.iter().map(|(_, count)| count).sum::<i64>()));
    let cost = match totals.known_cost_usd() {
        Some(cost) => format!("Cost: ${cost:.4}."),
        None => "Cost: not known; no price of the model is known.".to_owned(),
    };
    Ok(format!("{}\n\n{cost}", lines.join("\n")))
}

/// Writes to a file, never into the conversation, where it would become part of the next export.
pub(crate) async fn export(session: &mut Session, wanted: &str) -> Result<String, HubError> {
    let format = match wanted {
        "" => Format::Markdown,
        wanted => Format::parse(&wanted.to_lowercase()).ok_or_else(|| {
            let known = Format::ALL.map(|format| format!("`{}`", format.as_str())).join(", ");
            HubError::Invalid(format!("there is no format `{wanted}`; available: {known}"))
        })?,
    };
    let ports = &session.hub.ports;
    let id = session.row.id.clone();
    let by_hand = format!("run `attache sessions export {id} --format {}` in a terminal", format.as_str());
    let Some(scratch) = &ports.scratch else {
        return Ok(format!("There is no place for a file here; {by_hand}."));
    };
    let mut text = BoundedText::default();
    let sources = ExportSources { store: &*ports.store, blobs: &*ports.blobs };
    match export::export(sources, &id, &ExportStyle::from(format), &mut text).await {
        Ok(()) => {}
        Err(ExportError::Write(_)) => {
            return Ok(format!("This session is too large to be exported here; {by_hand}."));
        }
        Err(ExportError::UnknownSession(id)) => return Err(HubError::unknown_session(&id)),
        Err(ExportError::Store(error)) => return Err(error.into()),
    }
    let name = format!("session.{}", format.as_str());
    match scratch.save(&id, &name, text.0).await {
        Ok(path) => Ok(format!(
            "Exported to `{}`. The file goes with the scratch directory of this session: copy it to keep it.",
            path.display()
        )),
        Err(error) => Ok(format!("The export can't be written ({error}); {by_hand}.")),
    }
}

/// Accepts up to `EXPORTED_BYTES`.
#[derive(Default)]
struct BoundedText(Vec<u8>);

impl Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > EXPORTED_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
