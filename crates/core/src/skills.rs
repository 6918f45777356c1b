//! Skills: texts that a model loads when it needs them. The prompt has only their names and purposes; a tool
//! returns the text. Pure; reads no file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::front_matter::{FrontMatter, FrontMatterError};
use crate::legible::legible_line;
use crate::limits::{
    BYTES_PER_TOKEN, SKILL_DESCRIPTION_CHARACTERS, SKILL_INDEX_TOKENS, SKILL_INDEX_WINDOW_SHARE,
    SKILL_NAME_CHARACTERS,
};

/// The name of a skill's file.
pub const FILE_NAME: &str = "SKILL.md";

/// One skill, as its front matter describes it.
#[derive(Debug)]
pub struct Skill {
    /// The name under which a model loads it.
    pub name: Arc<str>,
    /// One line, cut in the same way for every reader.
    pub description: Arc<str>,
    /// Keys of its file that are nearly known ones.
    pub slips: Vec<FrontMatterError>,
    /// The `SKILL.md`.
    pub path: PathBuf,
    /// The same with all links resolved.
    pub real: PathBuf,
    /// Read on first use; the code that reads files fills it.
    pub body: OnceLock<Arc<str>>,
}

/// The skills of a session, those with precedence first, each name once.
#[derive(Debug, Default)]
pub struct Skills {
    /// In the order in which the model sees them.
    pub list: Vec<Arc<Skill>>,
    /// Directories outside of the workspace that contain skills: calls may read them without a question.
    pub directories: Vec<PathBuf>,
}

impl PartialEq for Skills {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Skill>, &Arc<Skill>)| {
            (&one.name, &one.description, &one.real) == (&other.name, &other.description, &other.real)
        };
        self.directories == other.directories
            && self.list.len() == other.list.len()
            && self.list.iter().zip(&other.list).all(same)
    }
}

impl Eq for Skills {}

/// The keys that mean something here. Those of other programs may stand beside them.
const KEYS: [&str; 2] = ["name", "description"];

impl Skill {
    /// Parses the beginning of a skill's file, which has to contain the front matter. Without a name there, the
    /// directory's name is used.
    pub fn parse(path: &Path, real: PathBuf, text: &str) -> Result<Self, FrontMatterError> {
        let front = FrontMatter::parse(text)?;
        let of_directory = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
        let name = match front.text("name")? {
            Some(name) => name,
            None => of_directory.as_deref().unwrap_or_default(),
        };
        if !is_name(name) {
            let line = front.field("name").map_or(1, |field| field.line);
            return Err(FrontMatterError::new(line, BAD_NAME));
        }
        let Some(description) = front.text("description")? else {
            return Err(front.missing("description", "one line that says when to use it"));
        };
        let description = short_line(description);
        Ok(Self {
            name: name.into(),
            description: description.into(),
            slips: front.slips(&KEYS),
            path: path.to_owned(),
            real,
            body: OnceLock::new(),
        })
    }

    /// The directory with the files beside it, as the model can name it.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The body in the form that a model gets.
    pub fn block(&self, body: &str) -> String {
        // A body can't end its own block early.
        let body = body.trim().replace("</skill_content", "<\\/skill_content");
        format!(
            "<skill_content name=\"{}\">\n{body}\n</skill_content>\nFiles that it names are in {}: read them there \
             when you need them.",
            self.name,
            self.directory().display()
        )
    }
}

const BAD_NAME: &str = "`name` must be 1 to 64 letters, digits, `-`, `_`, `.` or `:`";

/// Whether a name can be typed as a command.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    !name.is_empty() && name.chars().count() <= SKILL_NAME_CHARACTERS && name.chars().all(is_plain)
}

/// A description in the form for lists.
pub(crate) fn short_line(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&legible_line(&line), SKILL_DESCRIPTION_CHARACTERS)
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let end = text.char_indices().nth(most.saturating_sub(1)).map_or(0, |(end, _)| end);
            format!("{}…", text[..end].trim_end())
        }
    }
}

impl Skills {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The skill of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<Skill>> {
        self.list.iter().find(|skill| *skill.name == *name)
    }

    /// The section of the system prompt for a model with this window; empty without skills. If the section
    /// would be too long, every description is cut to the same length; if even the names are too many, the last
    /// ones are left out and counted.
    pub fn section(&self, window: u64) -> String {
        if self.is_empty() {
            return String::new();
        }
        let tokens = SKILL_INDEX_TOKENS.min(window / SKILL_INDEX_WINDOW_SHARE);
        let room = usize::try_from(tokens * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
        let mut text =
            "Instructions for tasks of a kind. When one fits, load it with `skill` before you begin.\n"
                .to_owned();
        let room = room.saturating_sub(text.len());
        let fitting = WIDTHS.iter().map(|width| self.lines(*width)).find(|lines| bytes(lines) <= room);
        let lines = fitting.unwrap_or_else(|| self.first_names(room));
        lines.iter().for_each(|line| text.push_str(line));
        text
    }

    /// One line each, with a description of at most so many characters.
    fn lines(&self, width: usize) -> Vec<String> {
        let line = |skill: &Arc<Skill>| match shortened(&skill.description, width) {
            description if width > 0 => format!("- {}: {description}\n", skill.name),
            _ => format!("- {}\n", skill.name),
        };
        self.list.iter().map(line).collect()
    }

    fn first_names(&self, room: usize) -> Vec<String> {
        const ROOM_FOR_REST: usize = 80;
        let mut room = room.saturating_sub(ROOM_FOR_REST);
        let mut lines = self.lines(0);
        let fits = |line: &&String| {
            let fits = line.len() <= room;
            room = room.saturating_sub(line.len());
            fits
        };
        let kept = lines.iter().take_while(fits).count();
        let left_out = lines.len() - kept;
        lines.truncate(kept);
        lines.push(format!("- and {left_out} more; the user knows their names\n"));
        lines
    }
}

/// The lengths that are tried for descriptions, the longest first.
const WIDTHS: [usize; 7] = [SKILL_DESCRIPTION_CHARACTERS, 160, 120, 80, 60, 40, 0];

fn bytes(lines: &[String]) -> usize {
    lines.iter().map(String::len).sum()
}

#[cfg(test)]
mod tests;
