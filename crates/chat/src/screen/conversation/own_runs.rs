//! Commands of the user's own, typed behind `!`: shown as calls are, and told to the agent with the next
//! prompt.
//! Runs nothing.

use agent_client_protocol_schema::v1::{
    ContentBlock, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};

use super::ScreenState;
use crate::screen::composer::{Embeds, embedded};
use crate::screen::intent::Intent;
use crate::screen::limits::OWN_OUTPUT_BYTES;
use crate::screen::theme::Tone;
use crate::screen::transcript::OWN_RUN;

#[derive(Debug, Default)]
pub(super) struct OwnRuns {
    running: Option<OwnRun>,
    /// Results that the next prompt brings along: each with its command, its output and its end.
    results: Vec<String>,
    count: usize,
}

#[derive(Debug)]
struct OwnRun {
    id: String,
    command: String,
    output: KeptOutput,
}

/// The beginning and the end of what was printed.
#[derive(Debug, Default)]
struct KeptOutput {
    start: String,
    end: String,
    left_out: usize,
}

impl KeptOutput {
    fn push(&mut self, piece: &str) {
        let room = (OWN_OUTPUT_BYTES / 2).saturating_sub(self.start.len());
        let room = if self.end.is_empty() { piece.floor_char_boundary(room) } else { 0 };
        let (first, rest) = piece.split_at(room);
        self.start.push_str(first);
        self.end.push_str(rest);
        // Twice as much before something goes, so that not every piece moves the rest.
        if self.end.len() > OWN_OUTPUT_BYTES {
            let surplus = self.end.ceil_char_boundary(self.end.len() - OWN_OUTPUT_BYTES / 2);
            self.left_out += surplus;
            self.end.drain(..surplus);
        }
    }

    fn text(&self) -> String {
        match self.left_out {
            0 => format!("{}{}", self.start, self.end),
            left_out => format!("{}\n[{left_out} bytes left out]\n{}", self.start, self.end),
        }
    }
}

impl OwnRuns {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// How many results wait for the next prompt.
    pub(super) fn waiting(&self) -> usize {
        self.results.len()
    }

    pub(super) fn take_results(&mut self, embeds: Embeds) -> Vec<ContentBlock> {
        let results = std::mem::take(&mut self.results).into_iter().enumerate();
        let block = |(index, text): (usize, String)| match embeds {
            Embeds::Texts => embedded(&text, &format!("terminal:///command-{}", index + 1)),
            Embeds::Nothing => ContentBlock::from(text),
        };
        results.map(block).collect()
    }
}

impl ScreenState {
    pub(super) fn run_own(&mut self, command: &str) {
        if command.is_empty() {
            return self.hint("! and a command runs it here; the agent is told with your next prompt");
        }
        if self.own_runs.is_running() {
            return self.hint(format!("a command is still running: {} stops it", self.theme.stopper()));
        }
        self.composer.sent_elsewhere();
        self.own_runs.count += 1;
        let id = format!("{OWN_RUN}{}", self.own_runs.count);
        let page = self.page();
        let call = ToolCall::new(id.clone(), command.to_owned())
            .kind(ToolKind::Execute)
            .status(ToolCallStatus::InProgress);
        self.transcript.call(call, page);
        let command = command.to_owned();
        self.own_runs.running = Some(OwnRun { id, command: command.clone(), output: KeptOutput::default() });
        self.intents.push(Intent::Run(command));
    }

    pub(crate) fn own_output(&mut self, piece: &str) {
        let Some(run) = &mut self.own_runs.running else { return };
        run.output.push(piece);
        let fields = ToolCallUpdateFields::new().content(vec![run.output.text().into()]);
        let update = ToolCallUpdate::new(run.id.clone(), fields);
        let page = self.page();
        self.transcript.update_call(update, page);
    }

    /// `end` in words: "exit status: 1".
    pub(crate) fn own_ended(&mut self, end: &str, went: OwnRunEnd) {
        let Some(run) = self.own_runs.running.take() else { return };
        let output = run.output.text();
        let shown = format!("{}\n{end}", output.trim_end());
        let status = match went {
            OwnRunEnd::Well => ToolCallStatus::Completed,
            OwnRunEnd::Badly => ToolCallStatus::Failed,
        };
        let fields =
            ToolCallUpdateFields::new().status(status).content(vec![shown.trim_start().to_owned().into()]);
        let page = self.page();
        self.transcript.update_call(ToolCallUpdate::new(run.id, fields), page);
        self.own_runs.results.push(format!(
            "The user ran this command in their own terminal.\n$ {}\n{}\n({end})\n",
            run.command,
            output.trim_end()
        ));
        if self.own_runs.waiting() == 1 && !self.is_working() {
            self.note(Tone::Quiet, "Goes to the agent with your next prompt.");
        }
    }
}

/// How a command went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnRunEnd {
    Well,
    Badly,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept() {
        let mut output = KeptOutput::default();
        output.push("first\n");
        for _ in 0..10_000 {
            output.push("a line of sixteen\n");
        }
        output.push("last\n");
        let text = output.text();
        assert!(text.starts_with("first\n") && text.ends_with("last\n"), "{}", text.len());
        assert!(text.contains("bytes left out]") && text.len() < 2 * OWN_OUTPUT_BYTES, "{}", text.len());
        let all = text.len() + output.left_out;
        assert!(all >= 18 * 10_000, "{all}");
    }
}
