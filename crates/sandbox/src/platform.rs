//! What each system does in its own way: opening without following links, naming what is held open, renaming
//! without replacing. `linux` is for Linux, `portable` for every other Unix; with `--cfg attache_portable` the
//! latter is built and tested on Linux, too. Decides nothing.

#[cfg(all(target_os = "linux", not(attache_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
mod portable;

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{Mode, RawMode, Stat};

#[cfg(all(target_os = "linux", not(attache_portable)))]
use linux as system;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
use portable as system;

#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(crate) use system::look_at;
pub use system::{
    PROTECTS_LESS, SEARCH, hold_directory, make_fifo, path_of, rename_new, running_program, set_mode,
};
pub(crate) use system::{birth, copy_opened, open_without_links, runs_no_programs, stat_real};

/// A pipe that no program inherits.
pub fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// The mode in the type that all systems share.
#[allow(clippy::useless_conversion, reason = "elsewhere it has 16 bits")]
pub fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode.into()
}

/// A mode of a number, in the type that the system has for it.
pub fn mode_from(bits: u32) -> Mode {
    Mode::from_bits_truncate(bits as RawMode)
}

/// The number of the device, in the same way: only to be compared.
#[allow(clippy::unnecessary_cast, reason = "elsewhere it has 32 bits and a sign")]
pub fn device_of(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

/// The same since 1970.
pub(crate) fn since_epoch(stat: &Stat) -> Duration {
    let (seconds, nanoseconds) = changed_of(stat);
    Duration::new(u64::try_from(seconds).unwrap_or_default(), u32::try_from(nanoseconds).unwrap_or_default())
}

/// When it was last changed: seconds and nanoseconds.
#[allow(clippy::unnecessary_cast, reason = "each system has other types for both")]
pub fn changed_of(stat: &Stat) -> (i64, i64) {
    (stat.st_ctime as i64, stat.st_ctime_nsec as i64)
}
