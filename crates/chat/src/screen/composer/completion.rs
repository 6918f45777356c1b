//! What is offered for the word at the cursor: commands behind `/`, files and sessions behind `@`. Chooses
//! nothing.

use agent_client_protocol_schema::v1::{AvailableCommand, AvailableCommandInput};

use super::Vocabulary;
use super::files::KnownFiles;
use super::sessions::KnownSessions;
use crate::screen::harmless;
use crate::screen::limits::COMPLETIONS;

/// One row of the offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Takes the place of the word.
    pub(crate) text: String,
    /// A description of it, or a hint for its input.
    pub(crate) hint: String,
}

/// What may be completed, and where it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) start: usize,
    pub(crate) rows: Vec<Completion>,
    pub(crate) chosen: usize,
}

impl Offer {
    pub(crate) fn up(&mut self) {
        self.chosen = self.chosen.checked_sub(1).unwrap_or(self.rows.len().saturating_sub(1));
    }

    pub(crate) fn down(&mut self) {
        self.chosen = if self.chosen + 1 < self.rows.len() { self.chosen + 1 } else { 0 };
    }
}

/// A command that is answered by this program, not by the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnCommand {
    pub(crate) name: &'static str,
    pub(crate) hint: &'static str,
}

/// The offer for what is typed up to the cursor, if its last word asks for one.
pub(crate) fn offer(
    typed: &str,
    words: Vocabulary<'_>,
    files: &mut KnownFiles,
    sessions: &KnownSessions,
) -> Option<Offer> {
    let Vocabulary { own, commands } = words;
    if let Some(word) = typed.strip_prefix('/').filter(|word| !word.contains(char::is_whitespace)) {
        let rows = commands_for(word, own, commands);
        return (!rows.is_empty()).then_some(Offer { start: 0, rows, chosen: 0 });
    }
    let (start, word) = mentioned(typed)?;
    // Sessions have their place even where many files fit, and without a letter files come first.
    let found: Vec<Completion> = sessions.matching(word).map(session_row).collect();
    let mut rows: Vec<Completion> = files
        .matching(word, COMPLETIONS - found.len())
        .into_iter()
        .map(|path| Completion { text: format!("{} ", mention(path)), hint: String::new() })
        .collect();
    rows.extend(found);
    (!rows.is_empty()).then_some(Offer { start, rows, chosen: 0 })
}

/// What is typed behind the `@` that the last word begins with, and where that word begins.
pub(crate) fn mentioned(typed: &str) -> Option<(usize, &str)> {
    let start = typed.rfind(char::is_whitespace).map_or(0, |at| at + char_length(typed, at));
    Some((start, typed[start..].strip_prefix('@')?))
}

fn session_row((title, day): (&str, &str)) -> Completion {
    Completion { text: format!("@\"{title}\" "), hint: format!("session  {day}") }
}

/// A path as it is typed: quoted where blanks would end it.
pub(crate) fn mention(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

fn char_length(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Those that begin so, then those that have it within.
fn commands_for(word: &str, own: &[OwnCommand], commands: &[AvailableCommand]) -> Vec<Completion> {
    let word = word.to_lowercase();
    let own_rows = own.iter().map(|own| (own.name.to_owned(), own.hint.to_owned()));
    let agents = commands.iter().filter(|command| own.iter().all(|own| own.name != command.name));
    let rows: Vec<(String, String)> = own_rows.chain(agents.map(row)).collect();
    let name_of = |(name, _): &(String, String)| name.to_lowercase();
    // What is typed whole is meant, though another begins with it, too.
    let whole = rows.iter().filter(|row| name_of(row) == word);
    let starts = rows.iter().filter(|row| name_of(row).starts_with(&word) && name_of(row) != word);
    let within = rows.iter().filter(|row| name_of(row).find(&word).is_some_and(|at| at > 0));
    let completion =
        |(name, hint): &(String, String)| Completion { text: format!("/{name} "), hint: hint.clone() };
    whole.chain(starts).chain(within).map(completion).collect()
}

fn row(command: &AvailableCommand) -> (String, String) {
    let wants = match &command.input {
        Some(AvailableCommandInput::Unstructured(input)) => format!("[{}] ", input.hint),
        Some(_) | None => String::new(),
    };
    let hint = harmless::exact_line(&format!("{wants}{}", command.description));
    (harmless::exact_line(&command.name), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [OwnCommand; 1] = [OwnCommand { name: "model", hint: "choose the model" }];

    fn commands() -> Vec<AvailableCommand> {
        ["model", "compact", "mode"].map(|name| AvailableCommand::new(name, format!("does {name}"))).into()
    }

    fn texts(typed: &str, files: &mut KnownFiles) -> Option<Vec<String>> {
        let words = Vocabulary { own: &OWN, commands: &commands() };
        let offer = offer(typed, words, files, &KnownSessions::default())?;
        Some(offer.rows.into_iter().map(|row| row.text).collect())
    }

    #[test]
    fn commands_that_begin_so_come_first_and_none_twice() {
        let mut files = KnownFiles::default();
        assert_eq!(texts("/mo", &mut files).unwrap(), ["/model ", "/mode "]);
        assert_eq!(texts("/", &mut files).unwrap().len(), 3);
        assert_eq!(texts("/mode", &mut files).unwrap(), ["/mode ", "/model "], "what is whole comes first");
        assert_eq!(texts("/act", &mut files).unwrap(), ["/compact "]);
        assert_eq!(texts("/mode x", &mut files), None);
        assert_eq!(texts("see /mo", &mut files), None);
    }

    #[test]
    fn files_are_offered_behind_an_at_sign() {
        let mut files = KnownFiles::default();
        files.add(vec!["src/main.rs".into(), "a b.txt".into()]);
        assert_eq!(texts("look at @main", &mut files).unwrap(), ["@src/main.rs "]);
        assert_eq!(texts("@ab", &mut files).unwrap(), ["@\"a b.txt\" "]);
        assert_eq!(texts("me@main", &mut files), None);
        let nothing = Vocabulary { own: &[], commands: &[] };
        let mut sessions = KnownSessions::default();
        let session =
            agent_client_protocol_schema::v1::SessionInfo::new("s1", "/w").title("Main road".to_owned());
        sessions.set(vec![session]);
        let offered = offer("look @m", nothing, &mut files, &sessions).unwrap();
        assert_eq!(offered.start, 5);
        assert_eq!(offered.rows.last().unwrap().text, "@\"Main road\" ");
    }
}
