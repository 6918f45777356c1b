//! Tells the allocator of this platform to give large blocks back. Allocates nothing itself.
#![allow(unsafe_code)]

/// Blocks from here on come from the kernel one by one and go back to it when they are freed. Glibc's own first
/// value: with 1 MiB the pages and queues of a large run (256 KiB each) left up to 8 MiB more behind in the
/// arenas.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_FROM_BYTES: libc::c_int = 128 * 1024;

/// Free memory at the end of the heap that is kept for the next burst.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: libc::c_int = 2 * 1024 * 1024;

/// glibc takes the first large block that is freed as a sign that more will follow, and from then on keeps up
/// to 64 MiB per arena: one prompt with a large attachment would cost a day of resident memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back_large_blocks() {
    // SAFETY: sets two numbers of the allocator; called before there are other threads.
    let taken = unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) == 1
            && libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES) == 1
    };
    debug_assert!(taken, "glibc refuses neither");
}

/// Other allocators give back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_large_blocks() {}
