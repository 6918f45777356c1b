//! Decides what happens next in a session. Time, ids, files, models and clients arrive through `ports`.

pub mod choices;
pub mod chunk;
pub mod entry;
pub mod ids;
pub mod part;
pub mod ports;
