//! Writes sessions out. Only reads the store.

use std::io::Write;

use super::{Hub, HubError};
use crate::export::{self, ExportError, ExportStyle, Format};
use crate::ids::SessionId;

impl Hub {
    /// The visible conversation as text.
    pub async fn export(&self, id: &SessionId, format: Format) -> Result<String, HubError> {
        let mut text = Vec::new();
        self.export_to(id, format, &mut text).await?;
        String::from_utf8(text).map_err(|error| HubError::Internal(error.to_string()))
    }

    /// The same, written page by page.
    pub async fn export_to(
        &self,
        id: &SessionId,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<(), HubError> {
        let ports = &self.shared.ports;
        let sources = export::ExportSources { store: &*ports.store, blobs: &*ports.blobs };
        match export::export(sources, id, &ExportStyle::from(format), out).await {
            Ok(()) => Ok(()),
            Err(ExportError::UnknownSession(id)) => Err(self.shared.unknown_session(&id).await),
            Err(ExportError::Store(error)) => Err(error.into()),
            Err(ExportError::Write(error)) => Err(HubError::Internal(error.to_string())),
        }
    }
}
