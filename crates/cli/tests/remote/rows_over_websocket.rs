//! P1, P3, P4, P5 and P7 as on a pipe, over a WebSocket.

mod stage {
    pub(crate) type Stage = crate::served_stage::ServedStage<crate::served_stage::OverWebSocket>;
}

#[path = "../protocol/garbage.rs"]
mod garbage;
#[path = "../protocol/ids.rs"]
mod ids;
#[path = "../protocol/methods.rs"]
mod methods;
#[path = "../protocol/params.rs"]
mod params;
#[path = "../protocol/unknown_sessions.rs"]
mod unknown_sessions;
