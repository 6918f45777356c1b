//! What clients see of entries: everything that was said, wherever it is stored.

use super::Hub;
use crate::entry::SharedSegment;
use crate::prompt::shelf;

impl Hub {
    /// Entries for a client: restores content that was too large for its row.
    pub async fn brought_back(&self, segment: SharedSegment) -> SharedSegment {
        shelf::brought_back(segment, &*self.shared.ports.blobs).await
    }
}
