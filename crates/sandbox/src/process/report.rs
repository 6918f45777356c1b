//! The messages about a command in a pipe, and which pipes a helper inherits. Four bytes each; this module
//! sends nothing.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Names the pipes to a helper; commands do not get it.
pub(crate) const PIPES: &str = "ATTACHE_PIPES";

/// One message about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandReport {
    /// Everything is set up, the command begins.
    Started,
    /// With its wait status.
    Ended(i32),
    /// Another pipe carries the reason as text.
    NotStarted,
    /// The command had too many processes; we killed all of them.
    TooManyProcesses,
    /// All processes together used too much memory; we killed them.
    TooMuchMemory,
    /// The command ran unasked and filled the scratch; we killed all its processes.
    TooMuchScratch,
    /// How many processes were left, which we then killed.
    LeftOver(u32),
}

/// Numbers below this one count processes.
const LEFT_OVER: i32 = -1000;

impl CommandReport {
    /// Wait statuses are not negative.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let number: i32 = match self {
            Self::Started => -1,
            Self::NotStarted => -2,
            Self::TooManyProcesses => -3,
            Self::TooMuchMemory => -4,
            Self::TooMuchScratch => -5,
            Self::LeftOver(count) => LEFT_OVER.saturating_sub_unsigned(count),
            Self::Ended(status) => status,
        };
        number.to_ne_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 4]) -> Self {
        match i32::from_ne_bytes(bytes) {
            -1 => Self::Started,
            -2 => Self::NotStarted,
            -3 => Self::TooManyProcesses,
            -4 => Self::TooMuchMemory,
            -5 => Self::TooMuchScratch,
            count @ ..=LEFT_OVER => Self::LeftOver(count.abs_diff(LEFT_OVER)),
            status => Self::Ended(status),
        }
    }
}

/// The pipe ends that a helper inherits, by their numbers in our process.
#[derive(Debug)]
pub(crate) struct Pipes<'a> {
    pub(crate) lifeline: &'a OwnedFd,
    pub(crate) report: &'a OwnedFd,
    pub(crate) output: &'a OwnedFd,
    /// Present if errors have their own pipe.
    pub(crate) error_output: Option<&'a OwnedFd>,
}

/// The most pipes there can be.
pub(super) const PIPE_COUNT: usize = 4;

impl Pipes<'_> {
    /// A negative number means none.
    pub(super) fn descriptors(&self) -> [RawFd; PIPE_COUNT] {
        let errors = self.error_output.map_or(-1, AsRawFd::as_raw_fd);
        [self.lifeline.as_raw_fd(), self.report.as_raw_fd(), self.output.as_raw_fd(), errors]
    }

    pub(super) fn to_text(&self) -> String {
        let given = self.descriptors().into_iter().filter(|descriptor| *descriptor >= 0);
        given.map(|descriptor| descriptor.to_string()).collect::<Vec<_>>().join(":")
    }

    /// Lifeline, report, output and perhaps errors; `None` unless the text has three or four different
    /// descriptors, none of them a standard one.
    pub(crate) fn numbers(text: &OsStr) -> Option<([RawFd; 3], Option<RawFd>)> {
        let numbers: Vec<RawFd> =
            text.to_str()?.split(':').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let is_new = |at: usize| !numbers[..at].contains(&numbers[at]);
        if !numbers.iter().all(|number| *number > 2) || !(0..numbers.len()).all(is_new) {
            return None;
        }
        match numbers[..] {
            [lifeline, report, output] => Some(([lifeline, report, output], None)),
            [lifeline, report, output, errors] => Some(([lifeline, report, output], Some(errors))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for report in [
            CommandReport::Started,
            CommandReport::NotStarted,
            CommandReport::TooManyProcesses,
            CommandReport::TooMuchMemory,
            CommandReport::TooMuchScratch,
            CommandReport::Ended(0),
            CommandReport::Ended(9),
            CommandReport::LeftOver(0),
            CommandReport::LeftOver(512),
        ] {
            assert_eq!(CommandReport::from_bytes(report.to_bytes()), report);
        }
    }

    #[test]
    fn only_three_or_four_descriptors_beyond_the_standard_ones_are_pipes() {
        assert_eq!(Pipes::numbers("5:7:11".as_ref()), Some(([5, 7, 11], None)));
        assert_eq!(Pipes::numbers("5:7:11:12".as_ref()), Some(([5, 7, 11], Some(12))));
        for wrong in ["", "5:7", "5:7:11:12:13", "1:7:11", "5:x:11", "5:-7:11", "5:7:11:11", "5:7:11:2"] {
            assert_eq!(Pipes::numbers(wrong.as_ref()), None, "{wrong}");
        }
    }
}
