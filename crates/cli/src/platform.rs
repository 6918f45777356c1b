//! What each system does in its own way for this program. `linux` is for Linux, `portable` for every other
//! Unix; with `--cfg attache_portable` the latter is built and tested on Linux, too. Decides nothing.

#[cfg(all(target_os = "linux", not(attache_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
mod portable;

#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(crate) use linux::{
    give_back_large_blocks, holder_of, holder_of_socket, is_held_by_another_user, keep_others_out,
};
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
pub(crate) use portable::{
    give_back_large_blocks, holder_of, holder_of_socket, is_held_by_another_user, keep_others_out,
};
