//! P8, P9 and P10 as on a pipe, over a WebSocket.

mod stage {
    pub(crate) use crate::served_stage::until;
    pub(crate) type Stage = crate::served_stage::TurnStage<crate::served_stage::OverWebSocket>;
}

#[path = "../flow/cancel.rs"]
mod cancel;
#[path = "../flow/permission.rs"]
mod permission;
#[path = "../flow/queue.rs"]
mod queue;
