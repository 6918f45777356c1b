//! What the files of a user and of a project tell every model that works there: `AGENTS.md` and its like. Pure;
//! reads no file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::estimate;
use crate::limits::{BYTES_PER_TOKEN, INSTRUCTION_TOKENS, INSTRUCTION_WINDOW_SHARE};
use crate::prompt::digest;

/// The file names looked for in each directory, in this order.
pub const FILE_NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

/// One file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it was found.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// All files that apply to a workspace: the user's own first, the nearest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectInstructions(pub Vec<InstructionFile>);

/// What a look at the disk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundInstructions {
    /// The files of the project and of every directory above it.
    pub files: ProjectInstructions,
    /// Files that are not used, each with its reason: for the user.
    pub left_out: Vec<String>,
}

impl ProjectInstructions {
    /// Cuts the files to a number of tokens, and says which lost something. Cuts the farthest first, because
    /// nearer files say more about the work at hand.
    pub fn within(self, tokens: u64) -> (Self, Vec<PathBuf>) {
        let mut room = usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
        let (mut kept, mut cut) = (Vec::new(), Vec::new());
        for mut file in self.0.into_iter().rev() {
            if file.text.len() > room {
                cut.push(file.path.clone());
                file.text = beginning(&file.text, room);
            }
            room = room.saturating_sub(file.text.len());
            if !file.text.is_empty() {
                kept.push(file);
            }
        }
        kept.reverse();
        cut.reverse();
        (Self(kept), cut)
    }

    /// The section of the system prompt; empty without any file.
    pub fn section(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut text =
            "Of the user and of the project, for every agent. Follow them; where two differ, the later one and \
                        what the user says now count.\n"
                .to_owned();
        self.0.iter().for_each(|file| text.push_str(&file.block()));
        text
    }

    /// What to tell the model if the files differ from those that it was last told of.
    fn news(&self, last: &[FileDigest], tokens: u64) -> Option<String> {
        let is_new = |file: &&InstructionFile| !last.contains(&FileDigest::of(file));
        let (new, _) = Self(self.0.iter().filter(is_new).cloned().collect()).within(tokens);
        let mut text: String = new.0.iter().map(InstructionFile::block).collect();
        let is_gone = |told: &&FileDigest| !self.0.iter().any(|file| file.path == told.path);
        for gone in last.iter().filter(is_gone) {
            text.push_str(&format!("{} is gone: its instructions no longer apply.\n", gone.path.display()));
        }
        (!text.is_empty()).then(|| format!("<instructions_changed>\n{text}</instructions_changed>"))
    }

    fn to_json(&self) -> Value {
        let files = self.0.iter().map(|file| json!([file.path, file.text]));
        Value::Array(files.collect())
    }

    fn from_json(value: &Value) -> Option<Self> {
        let file = |file: &Value| {
            let (path, text) = (file.get(0)?.as_str()?.into(), file.get(1)?.as_str()?.to_owned());
            Some(InstructionFile { path, text })
        };
        value.as_array()?.iter().map(file).collect::<Option<_>>().map(Self)
    }
}

impl InstructionFile {
    /// The text in the form that a model reads, with its path.
    pub fn block(&self) -> String {
        // A file can't end its own block early.
        let text = self.text.trim_end().replace("</instructions", "<\\/instructions");
        format!("<instructions file=\"{}\">\n{text}\n</instructions>\n", self.path.display())
    }
}

/// The paths of the files whose blocks a text holds.
pub(crate) fn told_in(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("<instructions file=\"")?.strip_suffix("\">"))
}

/// As many whole lines from the beginning as fit, followed by a mark; empty if too few would fit to be
/// understood.
fn beginning(text: &str, room: usize) -> String {
    const LEAST: usize = 200;
    const MARK: &str = "[cut here: the instructions are too long]\n";
    let room = room.saturating_sub(MARK.len());
    if room < LEAST {
        return String::new();
    }
    let end = text.floor_char_boundary(room);
    let end = text[..end].rfind('\n').map_or(end, |line_end| line_end + 1);
    format!("{}{MARK}", &text[..end])
}

/// A file that a model was told of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileDigest {
    path: PathBuf,
    digest: String,
}

impl FileDigest {
    fn of(file: &InstructionFile) -> Self {
        Self { path: file.path.clone(), digest: digest(file.text.as_bytes()) }
    }

    fn all(instructions: &ProjectInstructions) -> Vec<Self> {
        instructions.0.iter().map(Self::of).collect()
    }
}

/// What a session has told the model of instructions; stored in its row as `instructions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldInstructions {
    /// What the system prompt says.
    pub captured: ProjectInstructions,
    /// Digests of the whole texts, like `last`, from when the system prompt was made.
    first: Vec<FileDigest>,
    /// Digests of what user messages told since; of the whole texts, because another model may have room for
    /// more or less.
    last: Vec<FileDigest>,
}

impl ToldInstructions {
    /// What the system prompt will say, and which files had to be shortened.
    pub fn first(found: ProjectInstructions, tokens: u64) -> (Self, Vec<PathBuf>) {
        let last = FileDigest::all(&found);
        let (captured, cut) = found.within(tokens);
        (Self { captured, first: last.clone(), last }, cut)
    }

    /// What to tell now; `None` if nothing has changed since the last time.
    pub fn tell(&mut self, now: &ProjectInstructions, tokens: u64) -> Option<String> {
        let news = now.news(&self.last, tokens)?;
        self.last = FileDigest::all(now);
        Some(news)
    }

    /// Call this when the messages that told news may be gone from the conversation: the news is told again.
    pub(crate) fn forget_news(&mut self) {
        self.last = self.first.clone();
    }

    /// The form in the session's row.
    pub fn to_json(&self) -> Value {
        let listed =
            |told: &[FileDigest]| told.iter().map(|told| json!([told.path, told.digest])).collect::<Vec<_>>();
        let (first, last) = (listed(&self.first), listed(&self.last));
        json!({ "captured": self.captured.to_json(), "first": first, "last": last })
    }

    /// Reads that form; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        let told = |told: &Value| {
            let (path, digest) = (told.get(0)?.as_str()?.into(), told.get(1)?.as_str()?.to_owned());
            Some(FileDigest { path, digest })
        };
        let listed = |key: &str| value.get(key)?.as_array()?.iter().map(told).collect::<Option<Vec<_>>>();
        let last = listed("last")?;
        // Old rows have only `last`.
        let first = listed("first").unwrap_or_else(|| last.clone());
        Some(Self { captured: ProjectInstructions::from_json(value.get("captured")?)?, first, last })
    }
}

/// How many tokens instructions may take beside a model of this window.
pub fn room(window: u64) -> u64 {
    INSTRUCTION_TOKENS.min(window / INSTRUCTION_WINDOW_SHARE)
}

/// The paths that a file imports: words that begin with `@`, outside of code. As written, in their order.
pub fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => found.extend(imports_of_line(line)),
        }
    }
    found
}

/// Every other piece between back-ticks is code.
fn imports_of_line(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    let words = prose.flat_map(str::split_whitespace);
    words.filter_map(|word| {
        let path = word.trim_start_matches(['(', '"', '\'', '[']).strip_prefix('@')?;
        let path = path.trim_end_matches(['.', ',', ';', ':', ')', '"', '\'', ']', '!', '?']);
        (!path.is_empty() && !path.contains('@')).then_some(path)
    })
}

/// Whether an import can only mean a file. `@name`, `@scope/package` and addresses may mean something else, so
/// a missing file of such a name is not worth a message.
pub fn is_plainly_path(import: &Path) -> bool {
    const ENDINGS: [&str; 6] = ["md", "mdx", "mdc", "txt", "rst", "adoc"];
    let ending = import.extension().and_then(|ending| ending.to_str());
    let is_text = ending.is_some_and(|ending| ENDINGS.contains(&ending));
    is_text || import.is_absolute() || ["./", "../"].iter().any(|start| import.starts_with(start))
}

/// What the user is told about instructions that were cut; `None` if none were.
pub(crate) fn cut_notice(cut: &[PathBuf], kept: &ProjectInstructions) -> Option<String> {
    if cut.is_empty() {
        return None;
    }
    let names: Vec<_> = cut.iter().map(|path| path.display().to_string()).collect();
    let bytes: usize = kept.0.iter().map(|file| file.text.len()).sum();
    let tokens = estimate::tokens(bytes as u64);
    Some(format!(
        "{} of them fit, about {tokens} tokens; shortened or left out: {}",
        kept.0.len(),
        names.join(", ")
    ))
}

/// The directories to search, the outermost first.
pub fn directories(root: &Path) -> Vec<&Path> {
    let mut directories: Vec<&Path> = root.ancestors().collect();
    directories.reverse();
    directories
}

#[cfg(test)]
mod tests;
