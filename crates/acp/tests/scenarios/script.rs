//! The `model` lines of a scenario as one script: each belongs to the prompt above it, and a word of the client
//! between two of them starts the next step.

use crate::grammar::{Saying, quoted, words_of};

#[derive(Debug, Default)]
pub(crate) struct Script {
    sections: Vec<Section>,
    /// The client spoke since the last line of the model.
    interrupted: bool,
}

#[derive(Debug)]
struct Section {
    head: String,
    origin: usize,
    lines: Vec<(usize, String)>,
}

impl Script {
    pub(crate) fn heard(&mut self, line: usize, saying: &Saying) {
        self.interrupted = true;
        let words = match saying {
            Saying::Prompt { params, .. } => words_of(params),
            Saying::Request { method, params, .. } if method == "_attache/queue/edit" => words_of(params),
            Saying::Request { .. }
            | Saying::Cancel(_)
            | Saying::Permission(_)
            | Saying::Line(_)
            | Saying::Leave => return,
        };
        let head = format!("on {}", quoted(&words));
        self.sections.retain(|section| !section.lines.is_empty());
        if self.sections.iter().any(|section| section.head == head) {
            // A repeated message gets no second answer; one that does needs words of its own.
            self.sections.push(Section { head: String::new(), origin: line, lines: Vec::new() });
            return;
        }
        self.sections.push(Section { head, origin: line, lines: Vec::new() });
    }

    pub(crate) fn say(&mut self, line: usize, text: &str) -> Result<(), (usize, String)> {
        if text.starts_with("on ") || self.sections.is_empty() {
            let head = if text.starts_with("on ") { text } else { "on *" };
            self.sections.push(Section { head: head.to_owned(), origin: line, lines: Vec::new() });
        }
        let Some(section) = self.sections.last_mut() else { return Ok(()) };
        if section.head.is_empty() {
            let reason = "this prompt has a script above; a second one needs other words".to_owned();
            return Err((line, reason));
        }
        if std::mem::take(&mut self.interrupted) && !section.lines.is_empty() {
            section.lines.push((line, "---".to_owned()));
        }
        if !text.starts_with("on ") {
            section.lines.push((line, text.to_owned()));
        }
        Ok(())
    }

    /// The script, and for each of its lines the line of the file it came from.
    pub(crate) fn text(&self, headers: &[(usize, String)]) -> (String, Vec<usize>) {
        let mut lines: Vec<(usize, &str)> =
            headers.iter().map(|(origin, header)| (*origin, header.as_str())).collect();
        for section in self.sections.iter().filter(|section| !section.lines.is_empty()) {
            lines.push((section.origin, &section.head));
            lines.extend(section.lines.iter().map(|(origin, line)| (*origin, line.as_str())));
        }
        let text: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
        (text, lines.into_iter().map(|(origin, _)| origin).collect())
    }
}
