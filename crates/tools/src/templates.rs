//! Reads the commands that users and projects have written. Does not run them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use attache_core::command_templates::CommandTemplate;
use attache_core::legible::visible_block;
use attache_core::skills::is_name;
use attache_sandbox::regular_file;

use crate::knowledge::{KnowledgePlace, TemplateSource};
use crate::limits::{SKILL_BYTES, TEMPLATE_DEPTH, TEMPLATES};
use crate::provenance::TextRules;

/// One look at the disk.
#[derive(Debug)]
pub(crate) struct TemplateReader<'a> {
    rules: &'a TextRules<'a>,
    found: Vec<(CommandTemplate, PathBuf)>,
    /// Real paths: a link adds nothing twice.
    seen: HashSet<PathBuf>,
    left_out: Vec<String>,
}

impl<'a> TemplateReader<'a> {
    pub(crate) fn new(rules: &'a TextRules<'a>) -> Self {
        Self { rules, found: Vec::new(), seen: HashSet::new(), left_out: Vec::new() }
    }

    /// Each with its file.
    pub(crate) fn done(self) -> (Vec<(CommandTemplate, PathBuf)>, Vec<String>) {
        (self.found, self.left_out)
    }

    pub(crate) fn place(&mut self, place: &KnowledgePlace, source: TemplateSource) {
        if let Ok(of) = place.of.canonicalize() {
            let walk = TemplateWalk { place, of: &of, source };
            self.directory(&place.directory, "", walk, TEMPLATE_DEPTH);
        }
    }

    /// Reads the files of a directory by name, then its subdirectories.
    fn directory(&mut self, directory: &Path, prefix: &str, walk: TemplateWalk<'_>, depth: usize) {
        let Ok(entries) = directory.read_dir() else { return };
        let mut paths: Vec<PathBuf> = entries.take(TEMPLATES).flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let (directories, files): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.into_iter().partition(|path| path.is_dir());
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
            if self.found.len() < TEMPLATES {
                self.file(file, prefix, walk);
            }
        }
        for below in directories.iter().filter(|_| depth > 0) {
            let name = below.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            self.directory(below, &format!("{prefix}{name}:"), walk, depth - 1);
        }
    }

    fn file(&mut self, path: &Path, prefix: &str, walk: TemplateWalk<'_>) {
        let Ok(real) = path.canonicalize() else { return };
        if !self.seen.insert(real.clone()) {
            return;
        }
        let template = match self.rules.refusal(&real, walk.place.origin, walk.of) {
            Some(reason) => Err(reason.to_owned()),
            None => read(path, &real, prefix),
        };
        let known = |name: &str| self.found.iter().find(|(known, _)| *known.name == *name);
        let reason = match template {
            Ok(template) => match known(&template.name) {
                Some((_, first)) => {
                    format!("there is a command `/{}` already: {}", template.name, first.display())
                }
                None => {
                    let template = match walk.source {
                        TemplateSource::User => template,
                        TemplateSource::Project | TemplateSource::Foreign => template.without_choice(),
                    };
                    return self.found.push((template, path.to_owned()));
                }
            },
            Err(reason) => reason,
        };
        self.left_out.push(format!("{}: {reason}", path.display()));
    }
}

/// What all files below one place have in common.
#[derive(Clone, Copy, Debug)]
struct TemplateWalk<'a> {
    place: &'a KnowledgePlace,
    of: &'a Path,
    source: TemplateSource,
}

fn read(path: &Path, real: &Path, prefix: &str) -> Result<CommandTemplate, String> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let name = format!("{prefix}{stem}");
    if !is_name(&name) {
        return Err("its name can't be typed: letters, digits, `-`, `_` and `.` make a command".to_owned());
    }
    let bytes = regular_file::read_real(real, SKILL_BYTES).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > SKILL_BYTES {
        return Err(format!("it has more than {SKILL_BYTES} bytes"));
    }
    let text = visible_block(&String::from_utf8_lossy(&bytes));
    CommandTemplate::parse(&name, &text).map_err(|error| error.to_string())
}
