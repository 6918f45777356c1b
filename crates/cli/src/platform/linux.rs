//! By the kernel and by glibc: `prctl`, `mallopt`, `/proc`.
#![allow(unsafe_code)]

mod port_holder;

pub(crate) use port_holder::{holder_of, holder_of_socket, is_held_by_another_user};

/// Blocks from here on come from the kernel one by one and go back to it when they are freed. Glibc's own first
/// value: with 1 MiB the pages and queues of a large run (256 KiB each) left up to 8 MiB more behind in the
/// arenas.
#[cfg(target_env = "gnu")]
const MAPPED_FROM_BYTES: libc::c_int = 128 * 1024;

/// Free memory at the end of the heap that is kept for the next burst.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 2 * 1024 * 1024;

/// Tells the allocator to give large blocks back; allocates nothing itself. Glibc takes the first large block
/// that is freed as a sign that more will follow, and from then on keeps up to 64 MiB per arena: one prompt
/// with a large attachment would cost a day of resident memory.
#[cfg(target_env = "gnu")]
pub(crate) fn give_back_large_blocks() {
    // SAFETY: sets two numbers of the allocator; called before there are other threads.
    let taken = unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) == 1
            && libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES) == 1
    };
    debug_assert!(taken, "glibc refuses neither");
}

/// Other allocators give back by themselves.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn give_back_large_blocks() {}

/// Keeps this process to itself: from here on `/proc/PID/environ`, `mem`, `fd` and their like, where keys are,
/// belong to root, no debugger of the user attaches, and a crash leaves no image of the memory. Does not hold
/// root, and nothing that a sandbox is for. What we start is an ordinary process again, the guard of a command
/// excepted: it is a copy of us.
pub(crate) fn keep_others_out() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        // Before there is a log; the sandbox holds commands all the same.
        eprintln!("attache: other processes of this user can look into this one: {error}");
    }
}
