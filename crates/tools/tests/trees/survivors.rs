//! Finds the processes of one tree from outside, wherever they have gone. Signals none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A tree that is known by a mark which no other process on the machine carries.
#[derive(Debug)]
pub(super) struct Tree {
    mark: String,
    /// Process namespaces in which a marked process was seen: nothing within can leave them.
    namespaces: BTreeSet<PathBuf>,
}

impl Tree {
    pub(super) fn of(mark: &str) -> Self {
        Self { mark: mark.to_owned(), namespaces: BTreeSet::new() }
    }

    /// The command lines of all that live. Zombies do not: their parents have yet to look.
    pub(super) fn alive(&mut self) -> Vec<String> {
        let own = fs::read_link("/proc/self/ns/pid").unwrap();
        let mut marked = Vec::new();
        let mut others = Vec::new();
        for process in processes() {
            let namespace = fs::read_link(process.join("ns/pid")).ok().filter(|found| *found != own);
            if self.is_marked(&process) {
                self.namespaces.extend(namespace);
                marked.push(process);
            } else if let Some(namespace) = namespace {
                others.push((process, namespace));
            }
        }
        let within = others.into_iter().filter(|(_, namespace)| self.namespaces.contains(namespace));
        let found = marked.into_iter().chain(within.map(|(process, _)| process));
        found.filter(|process| !is_zombie(process)).map(|process| described(&process)).collect()
    }

    fn is_marked(&self, process: &Path) -> bool {
        ["cmdline", "environ"].iter().any(|file| {
            fs::read(process.join(file))
                .is_ok_and(|text| text.windows(self.mark.len()).any(|part| part == self.mark.as_bytes()))
        })
    }
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let own = std::process::id().to_string();
    fs::read_dir("/proc").unwrap().flatten().filter_map(move |entry| {
        let name = entry.file_name().into_string().ok()?;
        (name.bytes().all(|byte| byte.is_ascii_digit()) && name != own).then(|| entry.path())
    })
}

/// Gone meanwhile counts as well.
fn is_zombie(process: &Path) -> bool {
    let Ok(status) = fs::read_to_string(process.join("status")) else { return true };
    status.lines().any(|line| line.starts_with("State:\tZ") || line.starts_with("State:\tX"))
}

fn described(process: &Path) -> String {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let mut line = String::from_utf8_lossy(&line).replace('\0', " ");
    line.truncate(line.floor_char_boundary(200));
    format!("{}: {line}", process.display())
}
