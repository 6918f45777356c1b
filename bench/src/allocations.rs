//! Counts allocations of this process. One relaxed addition each: too little to be seen in the figures beside
//! it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(unsafe_code, reason = "the trait is unsafe; every call goes to the system's allocator unchanged")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// How many allocations this takes. Other threads' count too: nothing else may run.
pub(crate) fn counted(act: impl FnOnce() -> Result<()>) -> Result<u64> {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    act()?;
    Ok(ALLOCATIONS.load(Ordering::Relaxed) - before)
}
