//! Reads skills: their front matter when a session begins, their text on first use.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::front_matter::FrontMatter;
use attache_core::legible::visible_block;
use attache_core::skills::{FILE_NAME, Skill, Skills};
use attache_sandbox::regular_file;

use crate::bounded::Bounded;
use crate::knowledge::KnowledgePlace;
use crate::limits::{SKILL_BYTES, SKILLS};
use crate::provenance::{FileOrigin, TextRules, is_trusted};

/// One look at the disk.
#[derive(Debug)]
pub(crate) struct SkillReader<'a> {
    rules: &'a TextRules<'a>,
    found: Skills,
    /// Real paths and contents: a link or a copy adds nothing twice.
    seen: HashSet<PathBuf>,
    texts: HashSet<Vec<u8>>,
    left_out: Vec<String>,
}

impl<'a> SkillReader<'a> {
    pub(crate) fn new(rules: &'a TextRules<'a>) -> Self {
        let (seen, texts) = (HashSet::new(), HashSet::new());
        Self { rules, found: Skills::default(), seen, texts, left_out: Vec::new() }
    }

    pub(crate) fn done(self) -> (Skills, Vec<String>) {
        (self.found, self.left_out)
    }

    /// Adds the skills of a directory, each a directory with a `SKILL.md`. A missing directory has none.
    pub(crate) fn place(&mut self, place: &KnowledgePlace) {
        let (Ok(real), Ok(of)) = (place.directory.canonicalize(), place.of.canonicalize()) else { return };
        // Others may write above the root: a link there does not speak for the user.
        let is_elsewhere = place.directory.strip_prefix(&place.of).is_ok_and(|name| of.join(name) != real);
        if place.origin == FileOrigin::Above && (is_elsewhere || !is_trusted(&real)) {
            return;
        }
        let Ok(entries) = real.read_dir() else { return };
        let mut names: Vec<_> = entries.take(SKILLS).flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            if self.found.list.len() < SKILLS {
                self.skill(&place.directory.join(name).join(FILE_NAME), place, &real, &of);
            }
        }
    }

    fn skill(&mut self, path: &Path, place: &KnowledgePlace, collection: &Path, of: &Path) {
        let Ok(real) = path.canonicalize() else { return };
        if !self.seen.insert(real.clone()) {
            return;
        }
        let refusal = match place.origin {
            // The user's own may be links to wherever the user keeps them.
            FileOrigin::User => self.rules.is_kept(&real).then_some("it may not be read without a question"),
            FileOrigin::Above | FileOrigin::Root => self.rules.refusal(&real, place.origin, of),
        };
        if let Some(reason) = refusal {
            return self.left_out.push(format!("{}: {reason}", path.display()));
        }
        match self.read(path, &real) {
            Ok(None) => {}
            Ok(Some(skill)) => {
                self.open_directory(&real, collection);
                self.found.list.push(Arc::new(skill));
            }
            Err(reason) => self.left_out.push(format!("{}: {reason}", path.display())),
        }
    }

    /// `None` for a skill that was already read with the same text.
    fn read(&mut self, path: &Path, real: &Path) -> Result<Option<Skill>, String> {
        let bytes = regular_file::read_real(real, SKILL_BYTES).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        let skill = Skill::parse(path, real.to_owned(), &text).map_err(|error| error.to_string())?;
        if !self.texts.insert(bytes) {
            return Ok(None);
        }
        match self.found.find(&skill.name) {
            Some(first) => {
                Err(format!("there is a skill `{}` already: {}", skill.name, first.path.display()))
            }
            None => Ok(Some(skill)),
        }
    }

    /// Files beside a skill may be read; a collection is opened once, however many skills it has.
    fn open_directory(&mut self, real: &Path, collection: &Path) {
        let own = real.parent().unwrap_or(real);
        let directory = if own.starts_with(collection) { collection } else { own };
        let is_open = |open: &PathBuf| directory.starts_with(open);
        if !self.rules.is_in_roots(directory) && !self.found.directories.iter().any(is_open) {
            self.found.directories.push(directory.to_owned());
        }
    }
}

/// The text of a skill after its front matter; read once.
pub(crate) async fn body(skill: Arc<Skill>) -> Result<Arc<str>, String> {
    if let Some(body) = skill.body.get() {
        return Ok(Arc::clone(body));
    }
    let real = skill.real.clone();
    let reading = tokio::task::spawn_blocking(move || read_body(&real)).await;
    let body = reading.unwrap_or_else(|error| Err(io::Error::other(error)));
    let body = body.map_err(|error| format!("{}: {error}", skill.path.display()))?;
    Ok(Arc::clone(skill.body.get_or_init(|| body)))
}

fn read_body(real: &Path) -> io::Result<Arc<str>> {
    let bytes = regular_file::read_real(real, SKILL_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    // Its front matter was valid when it was found; if it is not any more, the whole file is text.
    let body = FrontMatter::parse(&text).map_or(&*text, |front| front.body);
    let most = usize::try_from(SKILL_BYTES).unwrap_or(usize::MAX);
    Ok(Bounded::head(visible_block(body), most).into_text().into())
}
