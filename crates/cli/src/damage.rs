//! What we tell users about a damaged session database: what happened, where the old sessions are, how to read
//! them.

use std::path::Path;

use attache_store::{OldSessions, SetAside};

/// The title of the message to the next client.
pub(crate) const DAMAGED: &str = "The session database was damaged";

pub(crate) fn what_became_of(set_aside: &SetAside) -> String {
    let path = &set_aside.path;
    match set_aside.sessions {
        OldSessions::Saved => {
            format!(
                "attache repaired it, and all sessions are there; the damaged file is kept as {}",
                path.display()
            )
        }
        OldSessions::LeftBehind => {
            format!("attache moved it to {} and made a new one. {}", path.display(), how_to_read(path))
        }
    }
}

/// The title of the message to the next client.
pub(crate) const FOREIGN_JOURNAL: &str = "A foreign journal lay beside the session database";

pub(crate) fn what_was_foreign(moved_to: &Path) -> String {
    format!(
        "attache did not write it and obeyed nothing of it; it is kept as {}. A command may have tried to change \
         your sessions and rules: keep the database outside of the directories that agents work in",
        moved_to.display()
    )
}

/// Most of a damaged file is often still readable.
pub(crate) fn how_to_read(database: &Path) -> String {
    let file = quoted(database);
    format!(
        "What can be read of your old sessions: `attache sessions list --store {file}`, \
         `attache sessions export ID --store {file}`"
    )
}

/// The path, quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+:@%,".contains(character);
    match text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_space_can_be_pasted() {
        assert_eq!(quoted(Path::new("/home/me/sessions.db.damaged-1")), "/home/me/sessions.db.damaged-1");
        assert_eq!(quoted(Path::new("/my home/it's.db")), "'/my home/it'\\''s.db'");
    }
}
