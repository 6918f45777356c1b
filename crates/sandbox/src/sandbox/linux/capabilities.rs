//! Gives up what makes root more than any other user. Nothing gives it back.
#![allow(unsafe_code)]

/// Gives up every capability, also those that a program of root would get by being executed. Others than root
/// have none.
pub(crate) fn drop_capabilities() {
    /// The kernel's numbers end long before; it refuses those it does not know.
    const CAPABILITIES: libc::c_ulong = 64;
    const VERSION: u32 = 0x2008_0522; // _LINUX_CAPABILITY_VERSION_3
    let header = [VERSION, 0];
    let none = [0u32; 6];
    // SAFETY: plain system calls; the kernel reads two words of the header and six of the sets.
    unsafe {
        for capability in 0..CAPABILITIES {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr());
    }
}
