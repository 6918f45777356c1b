//! P8, P9 and P10 as on a pipe, over streamable HTTP.

mod stage {
    pub(crate) use crate::served_stage::until;
    pub(crate) type Stage = crate::served_stage::TurnStage<crate::served_stage::OverHttp>;
}

#[path = "../flow/cancel.rs"]
mod cancel;
#[path = "../flow/permission.rs"]
mod permission;
#[path = "../flow/queue.rs"]
mod queue;
