//! Shell completions, made from the same definition as the command line.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;

/// Writes the completions for a shell. Generates them in memory first, because the generator itself would panic
/// on a closed pipe.
pub(crate) fn write(shell: Shell, output: &mut dyn Write) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "attache", &mut script);
    output.write_all(&script)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_shell_learns_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            write(*shell, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for word in [
                "acp",
                "demo",
                "models",
                "refresh",
                "auth",
                "logout",
                "doctor",
                "sessions",
                "export",
                "search",
                "import",
                "diff",
                "timeline",
                "usage",
                "completions",
                "print-config",
            ] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn a_closed_pipe_is_an_error_not_a_panic() {
        assert_eq!(write(Shell::Bash, &mut ClosedPipe).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
