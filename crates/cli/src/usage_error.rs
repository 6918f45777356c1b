//! Wrong usage: what was typed can't be right, whatever is tried. Decides the exit codes of failed commands;
//! tells nobody.

use std::process::ExitCode;

use anyhow::Error;

use crate::answer::Interrupted;
use crate::config::{ConfigErrors, SettingOrigin};

/// A value that the user typed and we cannot use. Its message says so.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(pub(crate) String);

impl WrongUsage {
    /// A usage error if the user typed the value; another error if a file or a variable contains it.
    pub(crate) fn of(origin: &SettingOrigin, message: String) -> Error {
        match origin {
            SettingOrigin::Option(_) => Self(message).into(),
            SettingOrigin::Default | SettingOrigin::Environment(_) | SettingOrigin::File { .. } => {
                Error::msg(message)
            }
        }
    }
}

/// Turns a failure into a usage error with the same message.
pub(crate) trait OrWrongUsage<T> {
    fn or_wrong_usage(self) -> anyhow::Result<T>;
}

impl<T> OrWrongUsage<T> for anyhow::Result<T> {
    fn or_wrong_usage(self) -> anyhow::Result<T> {
        self.map_err(|error| WrongUsage(format!("{error:#}")).into())
    }
}

/// Whether the user has to change what they typed.
pub(crate) fn is_wrong_usage(error: &Error) -> bool {
    let of_option =
        |errors: &ConfigErrors| errors.0.iter().any(|error| matches!(error.origin, SettingOrigin::Option(_)));
    error.is::<WrongUsage>() || error.downcast_ref::<ConfigErrors>().is_some_and(of_option)
}

/// What shells say of a process that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// What a command ends with that failed so.
pub(crate) fn exit_code(error: &Error) -> ExitCode {
    match is_wrong_usage(error) {
        _ if error.is::<Interrupted>() => ExitCode::from(INTERRUPTED),
        true => ExitCode::from(2),
        false => ExitCode::FAILURE,
    }
}
