//! How a user is called who looks elsewhere: the bell always, and a notification of the desktop where the
//! terminal is known to pass one on and nobody looks at it.

use crate::screen::intent::RingReason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DesktopCaller {
    way: NotificationWay,
    watched: Attention,
}

/// Whether the terminal has the focus, as far as it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attention {
    Yes,
    No,
}

/// The sequence by which a terminal shows a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotificationWay {
    /// iTerm2, WezTerm, ghostty.
    Osc9,
    Kitty,
    /// foot, urxvt.
    Osc777,
    None,
}

impl DesktopCaller {
    /// Inside tmux and screen only the bell gets through.
    pub(super) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        let way = if is_set("TMUX") || is_set("STY") {
            NotificationWay::None
        } else if is_set("KITTY_WINDOW_ID") || term == "xterm-kitty" {
            NotificationWay::Kitty
        } else if matches!(program.as_str(), "iTerm.app" | "WezTerm" | "ghostty") {
            NotificationWay::Osc9
        } else if term.starts_with("foot") || term.starts_with("rxvt-unicode") {
            NotificationWay::Osc777
        } else {
            NotificationWay::None
        };
        Self { way, watched: Attention::Yes }
    }

    pub(super) fn is_looked_at(&mut self) {
        self.watched = Attention::Yes;
    }

    pub(super) fn is_left_alone(&mut self) {
        self.watched = Attention::No;
    }

    /// What has to be written. `title` is harmless already; what would end the sequence is left out of it.
    pub(super) fn call(self, reason: RingReason, title: &str) -> String {
        if self.watched == Attention::Yes {
            return "\x07".to_owned();
        }
        let words = match reason {
            RingReason::Question => "asks you something",
            RingReason::Done => "is done",
        };
        let title: String =
            title.chars().filter(|sign| *sign != ';' && !sign.is_control()).take(80).collect();
        let title = title.trim_start_matches(['?', '*', ' ']);
        match self.way {
            NotificationWay::Osc9 => format!("\x07\x1b]9;{title} {words}\x1b\\"),
            NotificationWay::Kitty => format!("\x07\x1b]99;i=attache;{title} {words}\x1b\\"),
            NotificationWay::Osc777 => format!("\x07\x1b]777;notify;{title};{words}\x1b\\"),
            NotificationWay::None => "\x07".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(pairs: &'static [(&'static str, &'static str)]) -> DesktopCaller {
        let mut caller = DesktopCaller::from_environment(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        });
        caller.is_left_alone();
        caller
    }

    #[test]
    fn a_notification_goes_to_terminals_that_pass_it_on_while_nobody_looks() {
        let iterm = caller(&[("TERM_PROGRAM", "iTerm.app")]);
        assert_eq!(iterm.call(RingReason::Done, "* Fix; it"), "\x07\x1b]9;Fix it is done\x1b\\");
        let kitty = caller(&[("TERM", "xterm-kitty")]);
        assert!(kitty.call(RingReason::Question, "a").contains("]99;i=attache;a asks you something"));
        let foot = caller(&[("TERM", "foot")]);
        assert!(foot.call(RingReason::Done, "a").contains("]777;notify;a;is done"));
        for other in [caller(&[]), caller(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")])] {
            assert_eq!(other.call(RingReason::Done, "a"), "\x07");
        }
        let mut watched = iterm;
        watched.is_looked_at();
        assert_eq!(watched.call(RingReason::Done, "a"), "\x07");
    }

    #[test]
    fn a_title_can_end_no_sequence() {
        let iterm = caller(&[("TERM_PROGRAM", "WezTerm")]);
        let call = iterm.call(RingReason::Done, "a\x07b\x1b\\c");
        assert_eq!(call.matches('\x1b').count(), 2, "{call:?}");
        assert_eq!(call.matches('\x07').count(), 1, "{call:?}");
    }
}
