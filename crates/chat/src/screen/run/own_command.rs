//! A command that the user typed behind `!`: run by the user's own shell, in the directory of the session,
//! without a sandbox, since it is the user's own. Whoever drops it kills it with its group.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::EventLoop;
use super::connect::LoopEvent;
use crate::screen::conversation::OwnRunEnd;

/// Bytes of one read.
const PIECE: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct RunningCommand {
    group: Option<Pid>,
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // After its own end there is no such group any more.
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "nothing is left of the command");
        }
    }
}

impl EventLoop<'_> {
    pub(super) fn run_own(&mut self, command: &str) {
        match start(command, &self.start.directories.directory) {
            Ok(child) => {
                let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
                self.own_run = Some(RunningCommand { group });
                tokio::spawn(follow(child, self.news.clone()));
            }
            Err(error) => {
                self.conversation.own_ended(&format!("it could not be started: {error}"), OwnRunEnd::Badly)
            }
        }
    }
}

/// Both of its outputs come through one pipe, in the order in which they are written.
fn start(command: &str, directory: &Path) -> std::io::Result<Child> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "sh".into());
    Command::new(shell)
        .args(["-c", "exec 2>&1; eval \"$0\"", command])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn follow(mut child: Child, news: mpsc::UnboundedSender<LoopEvent>) {
    let (mut buffer, mut held) = (vec![0; PIECE], Vec::new());
    if let Some(mut stdout) = child.stdout.take() {
        loop {
            tokio::select! {
                read = stdout.read(&mut buffer) => match read {
                    Ok(count @ 1..) => {
                        held.extend_from_slice(&buffer[..count]);
                        let piece = text_of(&mut held);
                        if news.send(LoopEvent::Printed(piece)).is_err() {
                            return;
                        }
                    }
                    Ok(0) | Err(_) => break,
                },
                // A process that it left in the background may hold the pipe for ever.
                _ = child.wait() => break,
            }
        }
        let rest = async {
            while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
                held.extend_from_slice(&buffer[..count]);
            }
        };
        if tokio::time::timeout(std::time::Duration::from_millis(100), rest).await.is_err() {
            tracing::debug!("something that the command started goes on");
        }
        drop(news.send(LoopEvent::Printed(String::from_utf8_lossy(&held).into_owned())));
    }
    let (end, went) = match child.wait().await {
        Ok(status) if status.success() => (status.to_string(), OwnRunEnd::Well),
        Ok(status) => (status.to_string(), OwnRunEnd::Badly),
        Err(error) => (error.to_string(), OwnRunEnd::Badly),
    };
    drop(news.send(LoopEvent::Ran(end, went)));
}

/// Takes the text that is whole; an incomplete character stays.
fn text_of(held: &mut Vec<u8>) -> String {
    let whole = match std::str::from_utf8(held) {
        Ok(_) => held.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => held.len(),
    };
    let text = String::from_utf8_lossy(&held[..whole]).into_owned();
    held.drain(..whole);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_in_two_pieces_is_one() {
        let mut held = vec![b'a', 0xc3];
        assert_eq!(text_of(&mut held), "a");
        held.push(0xa4);
        assert_eq!(text_of(&mut held), "\u{e4}");
        held.extend([0xff, b'b']);
        assert_eq!(text_of(&mut held), "\u{fffd}b");
    }
}
