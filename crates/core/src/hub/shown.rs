//! What clients are shown of entries: everything that was said, wherever it is kept.

use super::Hub;
use crate::entry::SharedSegment;
use crate::prompt::shelf;

impl Hub {
    /// Entries as a client is shown them: what was too large for its row is back in its place.
    pub async fn brought_back(&self, segment: SharedSegment) -> SharedSegment {
        shelf::brought_back(segment, &*self.shared.ports.blobs).await
    }
}
