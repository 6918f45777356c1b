//! The hits of one file: its matching lines and their neighbours, in the form of the answer. Reads nothing
//! itself.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use crate::limits::{GREP_LEAD_BYTES, GREP_LINE_BYTES, SEARCH_KEPT_BYTES};
use crate::search::SearchStop;

/// Lines as `12:match`, `13-neighbour`, `--` between groups.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub(super) text: String,
    pub(super) matches: Vec<MatchStart>,
    /// The file has more hits than were kept.
    pub(super) is_cut: bool,
    pub(super) is_binary: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MatchStart {
    /// Where this match begins in the text, including its preceding lines; earlier text belongs to other
    /// matches.
    pub(super) start: usize,
}

/// Collects the hits of one file.
pub(super) struct Collect<'a> {
    pub(super) hits: &'a mut Hits,
    pub(super) matcher: &'a RegexMatcher,
    pub(super) stop: &'a SearchStop,
    /// Where the lines before the next match begin.
    pub(super) lead: Option<usize>,
}

impl Collect<'_> {
    fn push(&mut self, number: Option<u64>, separator: char, line: &[u8]) {
        self.hits.text.push_str(&number.unwrap_or(0).to_string());
        self.hits.text.push(separator);
        self.push_line(line);
        self.hits.text.push('\n');
    }

    fn push_line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() <= GREP_LINE_BYTES {
            self.hits.text.push_str(&String::from_utf8_lossy(line));
            return;
        }
        let found = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
        let from = found.saturating_sub(GREP_LEAD_BYTES).min(line.len() - GREP_LINE_BYTES);
        let to = from + GREP_LINE_BYTES;
        let from = (from..to).find(|at| is_boundary(line[*at])).unwrap_or(from);
        let to =
            (to.saturating_sub(3)..=to).rev().find(|at| line.get(*at).is_none_or(|byte| is_boundary(*byte)));
        let to = to.unwrap_or(from + GREP_LINE_BYTES);
        if from > 0 {
            self.hits.text.push('…');
        }
        self.hits.text.push_str(&String::from_utf8_lossy(&line[from..to]));
        if to < line.len() {
            self.hits.text.push('…');
        }
    }
}

/// Whether a character of UTF-8 begins with this byte.
fn is_boundary(byte: u8) -> bool {
    !matches!(byte, 0x80..=0xbf)
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.hits.text.len() >= SEARCH_KEPT_BYTES || self.stop.is_due() {
            self.hits.is_cut = true;
            return Ok(false);
        }
        self.hits.matches.push(MatchStart { start: self.lead.take().unwrap_or(self.hits.text.len()) });
        self.push(found.line_number(), ':', found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        match context.kind() {
            SinkContextKind::Before => {
                self.lead.get_or_insert(self.hits.text.len());
            }
            SinkContextKind::After | SinkContextKind::Other => {}
        }
        self.push(context.line_number(), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.lead.get_or_insert(self.hits.text.len());
        self.hits.text.push_str("--\n");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.hits.is_binary = true;
        Ok(false)
    }
}
