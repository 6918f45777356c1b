//! What an answer refers to: pages and files, reported where the answer cites them.

use attache_core::chunk::{Chunk, Rest};
use attache_core::ports::StepEvent;

use super::{ResponsesDecoder, push};
use crate::openai_responses::wire::{ResponsesAnnotation, ResponsesEvent};

impl ResponsesDecoder {
    pub(super) fn cite(&mut self, fields: &ResponsesEvent<'_>, out: &mut Vec<StepEvent>) {
        let annotation = fields.annotation.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Some(annotation) = annotation else { return };
        let place = (fields.content_index.0, fields.annotation_index.0);
        if let Some(source) = self.source(&fields.item_id, place, &annotation) {
            push(out, source);
            self.open.messages.entry(fields.output_index.0).or_default().cited = true;
        }
    }

    pub(super) fn source(
        &self,
        item_id: &str,
        (content, number): (u64, u64),
        annotation: &ResponsesAnnotation<'_>,
    ) -> Option<Chunk> {
        let source_id = format!("{item_id}:{content}:{number}");
        let title = Some(annotation.title.to_string()).filter(|title| !title.is_empty());
        match &*annotation.kind {
            "url_citation" if !annotation.url.is_empty() => {
                let url = annotation.url.to_string();
                Some(Chunk::SourceUrl { source_id, url, title, rest: Rest::none() })
            }
            "file_citation" | "container_file_citation" | "file_path" if !annotation.file_id.is_empty() => {
                let filename = Some(annotation.filename.to_string()).filter(|name| !name.is_empty());
                let title = title.or_else(|| filename.clone());
                let title = title.unwrap_or_else(|| annotation.file_id.to_string());
                // The wire names no media type, but only a text can be cited by its words.
                let media_type = "text/plain".to_owned();
                let rest = self.mark(None, [("fileId", &*annotation.file_id)]);
                Some(Chunk::SourceDocument { source_id, media_type, title, filename, rest })
            }
            kind => {
                tracing::debug!(kind, "an unknown annotation of OpenAI Responses was passed over");
                None
            }
        }
    }
}
