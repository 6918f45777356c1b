//! Keeps this process to itself: other processes of the same user can't read its environment and memory, where
//! keys are. Does not hold root, and nothing that a sandbox is for.

/// From here on `/proc/PID/environ`, `mem`, `fd` and their like belong to root, no debugger of the user
/// attaches, and a crash leaves no image of the memory. What we start is an ordinary process again, the guard
/// of a command excepted: it is a copy of us.
#[cfg(target_os = "linux")]
pub(crate) fn keep_others_out() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        // Before there is a log; the sandbox holds commands all the same.
        eprintln!("attache: other processes of this user can look into this one: {error}");
    }
}

/// Elsewhere no process sees another's environment through the file system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_others_out() {}
