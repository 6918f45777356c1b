//! One simple command: its assignments, redirections and words, and what they come to. Which program does what stands elsewhere.

use std::path::PathBuf;

use attache_core::ports::tool::{Access, CommandAccess, CommandNature};
use tree_sitter::Node;

use super::state::{Flow, State};
use super::variables::{Kind, kind};
use super::verdict::Verdict;
use super::word::{Place, Word};
use super::{Reader, Unclear, resolved};

/// Devices that hold nothing.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
];

impl Reader<'_> {
    /// A `command` of the tree, with redirections that the grammar put elsewhere.
    pub(super) fn simple(
        &mut self,
        node: Node<'_>,
        outer: &[Node<'_>],
        text: &str,
        mut state: State,
    ) -> Result<Flow, Unclear> {
        let mut words = Vec::new();
        let mut redirects = Vec::new();
        let mut set = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => set.push(child),
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => redirects.push(child),
                "command_name" => {
                    let name = child.named_child(0).unwrap_or(child);
                    words.extend(self.words(name, text, &mut state)?);
                }
                "comment" => {}
                "subshell" | "(" | ")" => return Err("a command is followed by a bracket".into()),
                _ => words.extend(self.words(child, text, &mut state)?),
            }
        }
        redirects.extend(outer);
        let assigned = self.environment(&set, text, &mut state)?;
        // The words behind a redirection are the command's own: `rm 2>/dev/null -rf x`.
        words.extend(self.redirects(&redirects, text, &mut state)?);
        if words.is_empty() {
            return if set.is_empty() {
                Ok(Flow::both(state))
            } else {
                Err("an assignment has a redirection".into())
            };
        }
        self.command(&words, &assigned, state)
    }

    /// Words that run as a command in this state, whoever put them together.
    pub(super) fn command(
        &mut self,
        words: &[Word],
        assigned: &[String],
        state: State,
    ) -> Result<Flow, Unclear> {
        let Some(name) = words.first().and_then(Word::text).filter(|_| !words[0].splits) else {
            return Err("the name of a program is not known before it runs".into());
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err("the name of a program is empty or has blanks".into());
        }
        if matches!(
            name,
            "{" | "}"
                | "!"
                | "[["
                | "]]"
                | "(("
                | "function"
                | "then"
                | "do"
                | "done"
                | "fi"
                | "esac"
                | "in"
                | "if"
                | "for"
                | "while"
                | "case"
                | "until"
                | "select"
                | "else"
                | "elif"
        ) {
            return Err("a word of the grammar stands where a program should".into());
        }
        self.found.program(name);
        if let Some(function) = state.function(name).cloned() {
            return self.call(name, &function, words, assigned, state);
        }
        if let Some(flow) = self.builtin(name, words, assigned, &state)? {
            return Ok(flow);
        }
        self.program(words, assigned, &state)?;
        Ok(Flow::both(state))
    }

    /// A function is what its body does.
    fn call(
        &mut self,
        name: &str,
        function: &super::state::Function,
        words: &[Word],
        assigned: &[String],
        state: State,
    ) -> Result<Flow, Unclear> {
        if self.steps == 0 {
            return Err("it repeats too much to be followed".into());
        }
        if !assigned.is_empty() {
            return Err(Unclear(format!("the function {name} is called with variables of its own")));
        }
        let mut outcome = None;
        if function.maybe {
            self.program(words, assigned, &state)?;
            outcome = Some(state.clone());
        }
        for body in &function.bodies {
            // `return` and `exit` may end it anywhere.
            let after = self.text(body, &state)?.either();
            outcome = super::state::join(outcome, after);
        }
        Ok(super::state::join(outcome, Some(state)).map_or_else(Flow::ended, Flow::both))
    }

    /// A program that is not part of the shell.
    pub(super) fn program(
        &mut self,
        words: &[Word],
        assigned: &[String],
        state: &State,
    ) -> Result<(), Unclear> {
        let verdict = self.judge(words, state)?;
        self.report(verdict, assigned, state)
    }

    /// Writes down what a command comes to, once for each place it may run in.
    pub(super) fn report(
        &mut self,
        verdict: Verdict,
        assigned: &[String],
        state: &State,
    ) -> Result<(), Unclear> {
        let Some(directories) = state.directories() else {
            return Err("the directory a command runs in is not known before".into());
        };
        let directories: Vec<PathBuf> = directories.to_vec();
        for directory in &directories {
            let directory = match &verdict.directory {
                Some(moved) => resolved(directory, moved),
                None => directory.clone(),
            };
            let mut nature = verdict.nature.clone();
            let mut words = assigned.to_vec();
            words.extend(verdict.words.iter().cloned());
            let mut prefix = verdict.prefix;
            if !assigned.is_empty() {
                // Programs may know a variable nobody here knows.
                nature = if nature == CommandNature::ReadOnly { CommandNature::Effects } else { nature };
                prefix = if prefix == 0 { 0 } else { prefix + assigned.len() };
            }
            let mut paths = Vec::new();
            for place in &verdict.reads {
                match self.path(place, &directory) {
                    Some(path) => paths.extend(path.map(Access::ReadPath)),
                    None => {
                        nature =
                            CommandNature::Unclear("which files it reads is not known before it runs".into())
                    }
                }
            }
            for place in &verdict.writes {
                match self.path(place, &directory) {
                    Some(path) => paths.extend(path.map(Access::WritePath)),
                    None => {
                        nature =
                            CommandNature::Unclear("which files it writes is not known before it runs".into())
                    }
                }
            }
            if matches!(nature, CommandNature::Unclear(_)) {
                prefix = 0;
            }
            self.found.command(CommandAccess { words, directory, nature, prefix })?;
            paths.into_iter().for_each(|access| self.found.add(access));
        }
        for host in &verdict.hosts {
            self.found.add(Access::Network { host: host.clone() });
        }
        Ok(())
    }

    /// Outer `None`: not known. Inner `None`: nothing that matters.
    fn path(&self, place: &Place, directory: &std::path::Path) -> Option<Option<PathBuf>> {
        match place {
            Place::Unknown => None,
            Place::At(path)
                if DEVICES.contains(&path.as_str()) || path.starts_with("/dev/fd/") || path.is_empty() =>
            {
                Some(None)
            }
            Place::At(path) | Place::Below(path) => Some(Some(resolved(directory, path))),
        }
    }

    /// Targets of redirections. Returns the words that the grammar took for further targets.
    pub(super) fn redirects(
        &mut self,
        redirects: &[Node<'_>],
        text: &str,
        state: &mut State,
    ) -> Result<Vec<Word>, Unclear> {
        let mut extra = Vec::new();
        for redirect in redirects {
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
                other => return Err(Unclear(format!("the redirection `{other}` is not known here"))),
            }
        }
        Ok(extra)
    }

    fn file_redirect(&mut self, node: Node<'_>, text: &str, state: &mut State) -> Result<Vec<Word>, Unclear> {
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
            let reads = matches!(operator, "<" | "<&");
            self.redirect_to(&place, reads, state)?;
        }
        Ok(targets.concat())
    }

    fn redirect_to(&mut self, place: &Place, reads: bool, state: &State) -> Result<(), Unclear> {
        if let Place::At(path) = place
            && let Some(address) = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))
        {
            let host = address.split('/').next().unwrap_or("*").to_lowercase();
            self.found.add(Access::Network { host });
            return Ok(());
        }
        let directories = state.directories().map(<[PathBuf]>::to_vec);
        let absolute = matches!(place, Place::At(path) | Place::Below(path) if path.starts_with('/'));
        let directories = match directories {
            Some(known) => known,
            None if absolute => vec![PathBuf::from("/")],
            None => return Err("the directory of a redirection is not known before it runs".into()),
        };
        for directory in directories {
            match self.path(place, &directory) {
                None => return Err("the target of a redirection is not known before it runs".into()),
                Some(None) => {}
                Some(Some(path)) if reads => self.found.add(Access::ReadPath(path)),
                Some(Some(path)) => self.found.add(Access::WritePath(path)),
            }
        }
        Ok(())
    }

    /// The end of the document is looked for as bash does; the grammar has to have found the same one.
    fn heredoc(&mut self, node: Node<'_>, text: &str, state: &mut State) -> Result<Vec<Word>, Unclear> {
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
                other => return Err(Unclear(format!("`{other}` behind a here-document is not known here"))),
            }
        }
        let (Some(start), Some(end)) = (start, end) else { return Err("a here-document has no end".into()) };
        let word = &text[start.byte_range()];
        let mark: String = word.chars().filter(|character| !"'\"\\".contains(*character)).collect();
        if mark.is_empty() || mark.contains(['$', '`']) {
            return Err("the end of a here-document is not a plain word".into());
        }
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

    /// Variables set for one command. Returns those that programs may know.
    fn environment(
        &mut self,
        nodes: &[Node<'_>],
        text: &str,
        state: &mut State,
    ) -> Result<Vec<String>, Unclear> {
        let mut told = Vec::new();
        for node in nodes {
            let name =
                node.child_by_field_name("name").map(|name| &text[name.byte_range()]).unwrap_or_default();
            if let Some(value) = node.child_by_field_name("value") {
                self.single_word(value, text, state)?;
            }
            match kind(name) {
                Kind::Rules => return Err(Unclear(format!("it sets {name}, which rules what programs do"))),
                Kind::Harmless => {}
                Kind::Own => told.push(text[node.byte_range()].to_owned()),
            }
        }
        Ok(told)
    }
}
