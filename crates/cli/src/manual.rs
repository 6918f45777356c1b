//! Manual pages, made from the same definition as the command line: one for each command.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Args;

/// Writes `attache.1`, `attache-acp.1` and so on; replaces existing ones.
pub(crate) fn write(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("can't make {}", directory.display()))?;
    let mut root = Args::command();
    root.build();
    for (name, page) in pages(&root, "attache")? {
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, page).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

fn pages(command: &Command, name: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(name).render(&mut page)?;
    let mut all = vec![(name.to_owned(), page)];
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        all.extend(pages(below, &format!("{name}-{}", below.get_name()))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_names_its_options() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("man1");
        write(&place).unwrap();
        let page = |name: &str| fs::read_to_string(place.join(name)).unwrap_or_else(|_| panic!("{name}"));
        assert!(page("attache.1").contains(".TH"), "{}", page("attache.1"));
        for (name, option) in [
            ("attache.1", "verbose"),
            ("attache-acp.1", "trace"),
            ("attache-chat.1", "schema"),
            ("attache-sessions-export.1", "redact"),
            ("attache-mcp-serve.1", "listen"),
        ] {
            assert!(page(name).contains(option), "{name}: {}", page(name));
        }
        assert!(!place.join("attache-manual.1").exists());
    }

    #[test]
    fn a_directory_that_can_t_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = write(&file.path().join("man1")).unwrap_err();
        assert!(error.to_string().starts_with("can't make "), "{error}");
    }
}
