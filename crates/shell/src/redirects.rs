//! Redirections and here-documents: what they read and write, and the words that the grammar attaches to them.
//! Runs no command.

use std::path::PathBuf;

use crate::Touch;
use tree_sitter::Node;

use super::arithmetic::is_name;
use super::effects::ENDLESS;
use super::state::ShellState;
use super::variables::{VariableKind, kind};
use super::word::{PathWord, Word};
use super::{CommandReader, Unclear};

/// What a redirection does to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Reads,
    Writes,
}

/// The standard input from redirections, as written: outer `None` if they do not change it; inner `None` if it
/// is empty.
pub(super) fn redirected_input(redirects: &[Node<'_>], text: &str) -> Option<Option<String>> {
    let mut input = None;
    for redirect in redirects {
        let source = &text[redirect.byte_range()];
        let descriptor = redirect.child(0).filter(|child| child.kind() == "file_descriptor");
        if descriptor.is_some_and(|number| &text[number.byte_range()] != "0") {
            continue;
        }
        let reads = redirect.kind() != "file_redirect"
            || source.trim_start_matches(|character: char| character.is_ascii_digit()).starts_with('<');
        if reads {
            let is_nothing = source.trim_start_matches('0').replace([' ', '\t'], "") == "</dev/null";
            input = Some((!is_nothing).then(|| source.to_owned()));
        }
    }
    input
}

impl CommandReader<'_> {
    /// Reads the targets of redirections. Returns the words that the grammar took for further targets.
    pub(super) fn redirects(
        &mut self,
        redirects: &[Node<'_>],
        text: &str,
        state: &mut ShellState,
    ) -> Result<Vec<Word>, Unclear> {
        let mut extra = Vec::new();
        for redirect in redirects {
            if let Some(name) = numbered(&text[..redirect.start_byte()])? {
                state.set(name, None);
            }
            match redirect.kind() {
                "file_redirect" => extra.extend(self.file_redirect(*redirect, text, state)?),
                "herestring_redirect" => {
                    let mut cursor = redirect.walk();
                    for child in redirect.named_children(&mut cursor) {
                        if child.kind() != "file_descriptor" {
                            self.single_word(child, text, state)?;
                        }
                    }
                }
                "heredoc_redirect" => extra.extend(self.heredoc(*redirect, text, state)?),
                other => return Err(Unclear(format!("the redirection `{other}` is unknown to attache"))),
            }
        }
        Ok(extra)
    }

    fn file_redirect(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<Vec<Word>, Unclear> {
        let mut operator = "";
        let mut targets = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_descriptor" => {}
                _ if !child.is_named() && targets.is_empty() && operator.is_empty() => {
                    operator = child.kind()
                }
                _ => targets.push(self.words(child, text, state)?),
            }
        }
        let duplicates = matches!(operator, ">&" | "<&" | ">&-" | "<&-");
        if matches!(operator, ">&-" | "<&-") {
            return Ok(targets.concat());
        }
        if targets.is_empty() {
            return Err("a redirection has no target".into());
        }
        let target = targets.remove(0);
        let [target] = target.as_slice() else { return Err("a redirection has several targets".into()) };
        let number =
            |text: &str| text.trim_end_matches('-').chars().all(|character| character.is_ascii_digit());
        if !(duplicates && target.text().is_some_and(number)) {
            let place = target.place();
            let direction = match operator {
                "<" | "<&" => Direction::Reads,
                _ => Direction::Writes,
            };
            self.redirect_to(&place, direction, state)?;
        }
        Ok(targets.concat())
    }

    fn redirect_to(
        &mut self,
        place: &PathWord,
        direction: Direction,
        state: &ShellState,
    ) -> Result<(), Unclear> {
        if let PathWord::At(path) = place
            && let Some(address) = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))
        {
            let host =
                address.split('/').next().filter(|host| !host.is_empty()).unwrap_or("*").to_lowercase();
            self.found.add(Touch::Host(host));
            return Ok(());
        }
        if let PathWord::At(path) = place
            && direction == Direction::Reads
            && ENDLESS.contains(&path.as_str())
        {
            self.endless.get_or_insert_with(|| path.clone());
        }
        let directories = state.directories().map(<[PathBuf]>::to_vec);
        let absolute = match place {
            PathWord::At(path) | PathWord::Below { directory: path, .. } | PathWord::Through(path) => {
                path.starts_with('/')
            }
            PathWord::Unknown => false,
        };
        let directories = match directories {
            Some(known) => known,
            None if absolute => vec![PathBuf::from("/")],
            None => return Err("the directory of a redirection is unknown before it runs".into()),
        };
        for directory in directories {
            if direction == Direction::Reads {
                let closed = self.closed_at(place, &directory);
                closed.into_iter().for_each(|path| self.found.add(Touch::Read(path)));
            }
            match self.path(place, &directory) {
                None => return Err("the target of a redirection is unknown before it runs".into()),
                Some(None) => {}
                Some(Some(_)) if self.may_meet_secret(place, &directory) => {
                    return Err(
                        "a pattern in a redirection fits a private key, or a link that leads elsewhere"
                            .into(),
                    );
                }
                Some(Some(path)) => self.found.add(match direction {
                    Direction::Reads => Touch::Read(path),
                    Direction::Writes => Touch::Write(path),
                }),
            }
        }
        Ok(())
    }

    /// Finds the end of the document as bash does, and checks that the grammar found the same one.
    fn heredoc(&mut self, node: Node<'_>, text: &str, state: &mut ShellState) -> Result<Vec<Word>, Unclear> {
        let mut extra = Vec::new();
        let (mut start, mut body, mut end) = (None, None, None);
        let mut strips = false;
        let mut cursor = node.walk();
        for (index, child) in node.children(&mut cursor).enumerate() {
            match child.kind() {
                "<<-" => strips = true,
                "heredoc_start" => start = Some(child),
                "heredoc_body" => body = Some(child),
                "heredoc_end" => end = Some(child),
                "file_redirect" => extra.extend(self.file_redirect(child, text, state)?),
                "herestring_redirect" => {
                    self.expand_all(child, text, state)?;
                }
                "<<" | "&&" | "||" | "pipeline" | "file_descriptor" => {}
                _ if node.field_name_for_child(index as u32) == Some("argument") => {
                    extra.extend(self.words(child, text, state)?);
                }
                _ if node.field_name_for_child(index as u32) == Some("right") => {}
                other => {
                    return Err(Unclear(format!("`{other}` after a here-document is unknown to attache")));
                }
            }
        }
        let (Some(start), Some(end)) = (start, end) else { return Err("a here-document has no end".into()) };
        let word = &text[start.byte_range()];
        let mark = plain_mark(word).filter(|_| ends_word(&text[start.end_byte()..]));
        let mark = mark.ok_or("the end of a here-document is not a plain word")?;
        let quoted = mark != word;
        let first_line = text[start.end_byte()..].find('\n').map(|at| start.end_byte() + at + 1);
        let mut at = first_line.ok_or("a here-document has no end")?;
        for line in text[at..].split('\n') {
            let bare = if strips { line.trim_start_matches('\t') } else { line };
            if bare == mark {
                let matches = at <= end.start_byte()
                    && end.end_byte() <= at + line.len()
                    && !end.byte_range().is_empty();
                if !matches {
                    return Err("it is not certain where a here-document ends".into());
                }
                if !quoted && let Some(body) = body {
                    self.here_document(body, text, state)?;
                }
                return Ok(extra);
            }
            if !quoted && line.ends_with('\\') {
                return Err("a line is continued within a here-document".into());
            }
            at += line.len() + 1;
        }
        Err("a here-document has no end".into())
    }
}

/// `END`, `'END'`, `"END"` and `\END`.
fn plain_mark(word: &str) -> Option<&str> {
    let quoted = |quote: char| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let mark = quoted('\'').or_else(|| quoted('"')).or_else(|| word.strip_prefix('\\')).unwrap_or(word);
    let is_plain = |character: char| character.is_alphanumeric() || "_-.".contains(character);
    (!mark.is_empty() && mark.chars().all(is_plain)).then_some(mark)
}

fn ends_word(rest: &str) -> bool {
    rest.starts_with([' ', '\t', '\n', ';', '|', '&', '<', '>', ')'])
}

/// The variable in `{name}>` that receives the descriptor's number, from the text right before the redirection.
fn numbered(before: &str) -> Result<Option<&str>, Unclear> {
    let Some(inner) = before.strip_suffix('}') else { return Ok(None) };
    // This is the end of a group.
    if inner.ends_with([' ', '\t', '\n', ';']) {
        return Ok(None);
    }
    let (outer, name) = inner.rsplit_once('{').unwrap_or_default();
    match is_name(name) {
        true if outer.ends_with('$') => Ok(None),
        true if kind(name) == VariableKind::Own => Ok(Some(name)),
        true | false => Err("a redirection sets a variable that is unknown".into()),
    }
}
