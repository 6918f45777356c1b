//! By inotify. Only where it says so of every change, and for a part of what one user may watch.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{self, inotify};
use rustix::io::Errno;

use super::WatchedChanges;
use crate::limits::{WATCH_EVENT_BYTES, WATCH_SHARE};

/// File systems that only this machine changes, by the kernel's numbers: ext, XFS, Btrfs, tmpfs, overlays,
/// F2FS, ZFS, bcachefs. Elsewhere a change may come without a word.
const LOCAL: [u64; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];

const MAXIMUM: &str = "/proc/sys/fs/inotify/max_user_watches";

/// The directories of one root that are watched.
#[derive(Debug)]
pub(in super::super) struct DirectoryWatch {
    queue: OwnedFd,
    /// Of others in it, which were mounted there, not everything may be said.
    device: u64,
    /// What is mounted where: the kernel says nothing of the directories that a mount covers.
    mounts: u64,
    /// The kernel's numbers of them.
    numbers: HashSet<i32>,
    maximum: usize,
}

impl DirectoryWatch {
    /// `None` where the kernel does not say everything, or has no room.
    pub(in super::super) fn of(root: &OwnedFd) -> Option<Self> {
        let kind = u64::try_from(fs::fstatfs(root).ok()?.f_type).ok()?;
        let allowed: usize = std::fs::read_to_string(MAXIMUM).ok()?.trim().parse().ok()?;
        let queue = LOCAL
            .contains(&kind)
            .then(|| inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok())??;
        let device = fs::fstat(root).ok()?.st_dev;
        let (mounts, numbers) = (mounts()?, HashSet::new());
        Some(Self { queue, device, mounts, numbers, maximum: allowed / WATCH_SHARE })
    }

    /// From now on, whatever changes of its entries and its mode is said.
    pub(in super::super) fn add(&mut self, directory: &OwnedFd, device: u64) -> Option<i32> {
        use inotify::WatchFlags;
        if self.numbers.len() >= self.maximum || device != self.device {
            return None;
        }
        let mask = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        // By the descriptor's name: it is this one, whatever its path leads to by now.
        let held = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let number = inotify::add_watch(&self.queue, held, mask).ok()?;
        self.numbers.insert(number);
        Some(number)
    }

    /// Of those that are watched only these stay so.
    pub(in super::super) fn keep<T>(&mut self, live: &HashMap<i32, T>) {
        for number in self.numbers.iter().filter(|number| !live.contains_key(number)) {
            // The kernel has removed it already where the directory is gone.
            if let Err(error) = inotify::remove_watch(&self.queue, *number)
                && error != Errno::INVAL
            {
                tracing::warn!(%error, "a directory is watched for longer than needed");
            }
        }
        self.numbers.retain(|number| live.contains_key(number));
    }

    pub(in super::super) fn changes(&mut self) -> WatchedChanges {
        use inotify::ReadFlags;
        let mut buffer = [MaybeUninit::uninit(); WATCH_EVENT_BYTES];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mounts = mounts().unwrap_or_default();
        let (mut changed, mut is_complete) = (HashSet::new(), mounts == self.mounts);
        self.mounts = mounts;
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => return WatchedChanges::Unknown,
            };
            // A file in it may have got another mode: that changes nothing here.
            let is_of_file = event.events().contains(ReadFlags::ATTRIB) && event.file_name().is_some();
            is_complete &= !event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if !is_of_file {
                changed.insert(event.wd());
            }
        }
        if is_complete { WatchedChanges::In(changed) } else { WatchedChanges::Unknown }
    }
}

/// Other than before if something was mounted or unmounted.
fn mounts() -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/proc/self/mountinfo").ok()?.hash(&mut hasher);
    Some(hasher.finish())
}
