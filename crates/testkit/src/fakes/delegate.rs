//! A client that keeps texts in memory: what its editor has open, what it was asked, and how it misbehaves. No
//! terminals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use attache_core::ports::delegate::{DelegateError, Lines, Offers, Terminal, TerminalCommand, TerminalLoss};
use attache_core::ports::{BoxFuture, Delegate};

/// What the client was asked, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Read(PathBuf, Lines),
    Write(PathBuf, String),
}

/// How it answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    #[default]
    Obliging,
    /// The dead-line has passed.
    Silent,
    /// Neither an answer nor a dead-line.
    Pending,
    /// Writes of this file are refused.
    Refuses(PathBuf),
}

#[derive(Debug, Default)]
struct State {
    offers: Offers,
    buffers: BTreeMap<PathBuf, String>,
    asked: Vec<Asked>,
    manner: Manner,
}

/// A cheap handle; all copies are the same client.
#[derive(Clone, Debug, Default)]
pub struct FakeEditor(Arc<Mutex<State>>);

impl FakeEditor {
    pub fn offering(offers: Offers) -> Self {
        let editor = Self::default();
        editor.0.lock().unwrap().offers = offers;
        editor
    }

    /// Reads and writes texts.
    pub fn with_texts() -> Self {
        Self::offering(Offers { reads_texts: true, writes_texts: true, ..Offers::default() })
    }

    pub fn open(&self, path: impl Into<PathBuf>, text: &str) {
        self.0.lock().unwrap().buffers.insert(path.into(), text.to_owned());
    }

    pub fn behave(&self, manner: Manner) {
        self.0.lock().unwrap().manner = manner;
    }

    pub fn buffer(&self, path: impl AsRef<Path>) -> Option<String> {
        self.0.lock().unwrap().buffers.get(path.as_ref()).cloned()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.0.lock().unwrap().asked.clone()
    }
}

fn excerpt(text: &str, lines: Lines) -> String {
    let first = lines.first.map_or(0, |first| first.saturating_sub(1) as usize);
    let count = lines.count.map_or(usize::MAX, |count| count as usize);
    text.split_inclusive('\n').skip(first).take(count).collect()
}

impl Delegate for FakeEditor {
    fn offers(&self) -> Offers {
        self.0.lock().unwrap().offers
    }

    fn read_text(&self, path: &Path, lines: Lines) -> BoxFuture<'static, Result<String, DelegateError>> {
        let mut state = self.0.lock().unwrap();
        state.asked.push(Asked::Read(path.to_owned(), lines));
        let answer = match (&state.manner, state.buffers.get(path)) {
            (Manner::Pending, _) => return Box::pin(std::future::pending()),
            (Manner::Silent, _) => Err(DelegateError::Silent),
            (Manner::Obliging | Manner::Refuses(_), Some(text)) => Ok(excerpt(text, lines)),
            // As an editor does with a file that is not open: it reads it from the disk.
            (Manner::Obliging | Manner::Refuses(_), None) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(excerpt(&text, lines)),
                Err(error) => Err(DelegateError::Refused(error.to_string())),
            },
        };
        Box::pin(async move { answer })
    }

    fn write_text(&self, path: &Path, text: String) -> BoxFuture<'static, Result<(), DelegateError>> {
        let mut state = self.0.lock().unwrap();
        state.asked.push(Asked::Write(path.to_owned(), text.clone()));
        let answer = match &state.manner {
            Manner::Pending => return Box::pin(std::future::pending()),
            Manner::Silent => Err(DelegateError::Silent),
            Manner::Refuses(refused) if refused == path => Err(DelegateError::Refused("no".into())),
            Manner::Obliging | Manner::Refuses(_) => {
                state.buffers.insert(path.to_owned(), text);
                Ok(())
            }
        };
        Box::pin(async move { answer })
    }

    fn open_terminal(
        &self,
        _command: TerminalCommand,
    ) -> BoxFuture<'static, Result<Arc<dyn Terminal>, DelegateError>> {
        Box::pin(async { Err(DelegateError::Refused("no terminals here".into())) })
    }

    fn terminals_lost(&self, _loss: TerminalLoss) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
