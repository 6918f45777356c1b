//! The menus: models, modes, efforts, prompts to go back to, keys. Each is a list of rows that stand for
//! intents.

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
};

use super::{Front, MenuRow, ScreenState};
use crate::screen::composer::{ComposerKeys, OwnCommand};
use crate::screen::intent::Intent;
use crate::screen::pager::Pager;
use crate::screen::picker::{Mark, MenuChoice, Picker};
use crate::screen::status::choices;
use crate::screen::terminal::ScreenStyle;

/// What each key does, for people.
const KEYS: [(&str, &str); 19] = [
    ("enter", "send; while the agent works: wait in the queue"),
    ("alt-enter, ctrl-j, \\ enter", "new line"),
    ("ctrl-s", "send into the running turn"),
    ("up", "on an empty line: edit what waits, else earlier prompts"),
    ("esc", "stop the turn; twice: go back to an earlier prompt"),
    ("shift-tab", "next mode"),
    ("/", "commands"),
    ("@", "files and sessions"),
    ("!", "run a command of your own; the agent is told"),
    ("ctrl-v", "a picture out of the clipboard; or paste its path"),
    ("ctrl-o", "details of calls and thoughts"),
    ("ctrl-g", "write in your editor"),
    ("ctrl-w u k y", "delete a word, to the start, to the end; put back"),
    ("alt-b alt-f", "a word back, a word on"),
    ("ctrl-l", "draw again"),
    ("ctrl-z", "suspend"),
    ("ctrl-c", "stop, empty the line; twice: leave"),
    ("ctrl-d", "leave"),
    ("/vi", "the keys of vi"),
];

/// The same where lines are read: what is left of them.
const KEYS_OF_LINES: [(&str, &str); 7] = [
    ("enter", "send"),
    ("\\ enter", "new line"),
    ("/", "a command; /details shows what calls and thoughts held"),
    ("!", "run a command of your own; the agent is told"),
    ("a number", "an answer to a question, a row of a list"),
    ("ctrl-c", "stop; twice: leave"),
    ("ctrl-d", "leave"),
];

impl ScreenState {
    /// The commands that are answered here, as far as the agent can do what they need.
    pub(super) fn own_commands(&self) -> Vec<OwnCommand> {
        let has = |category| self.facts.option(&category).is_some();
        let has_keys = self.theme.screen == ScreenStyle::Drawn;
        let has_modes = self.facts.modes.is_some() || has(SessionConfigOptionCategory::Mode);
        let all = [
            (true, "keys", "what each key does"),
            (has(SessionConfigOptionCategory::Model), "model", "choose the model"),
            (has_modes, "mode", "choose the mode"),
            (has(SessionConfigOptionCategory::ThoughtLevel), "effort", "choose how much the model thinks"),
            (self.approval_option().is_some(), "approval", "choose what runs without a question"),
            (self.agent.can_rewind, "rewind", "go back to an earlier prompt, files included"),
            (self.agent.can_list && self.agent.can_load, "resume", "open an earlier session"),
            (self.agent.can_fork, "fork", "go on in a copy of this session"),
            (true, "new", "begin a new session"),
            (true, "details", "what calls and thoughts held"),
            (has_keys, "vi", "the keys of vi, or those of a shell again"),
            (true, "quit", "leave"),
        ];
        all.into_iter()
            .filter(|(is_there, ..)| *is_there)
            .map(|(_, name, hint)| OwnCommand { name, hint })
            .collect()
    }

    fn approval_option(&self) -> Option<&SessionConfigOption> {
        self.facts.option(&SessionConfigOptionCategory::Other("_approval".to_owned()))
    }

    /// Carries out a command that is typed without arguments; false if it is the agent's.
    pub(super) fn own_command(&mut self, text: &str) -> bool {
        let Some(name) = text.trim().strip_prefix('/') else { return false };
        if self.own_commands().iter().all(|own| own.name != name) {
            return false;
        }
        match name {
            "keys" => self.show_keys(),
            "model" => self.option_menu(&SessionConfigOptionCategory::Model),
            "mode" => self.mode_menu(),
            "effort" => self.option_menu(&SessionConfigOptionCategory::ThoughtLevel),
            "approval" => self.option_menu(&SessionConfigOptionCategory::Other("_approval".to_owned())),
            "rewind" => self.rewind_menu(),
            "resume" => self.intents.push(Intent::ListSessions),
            "fork" => self.at_rest(Intent::Fork),
            "new" => self.at_rest(Intent::StartNew),
            "details" => self.show_details(),
            "vi" => self.change_keys(),
            _ => self.intents.push(Intent::Leave),
        }
        true
    }

    /// What would take the session away under a running turn waits for its end.
    fn at_rest(&mut self, intent: Intent) {
        match self.is_working() {
            true => self.hint(format!("the agent is at work: {} stops it", self.theme.stopper())),
            false => self.intents.push(intent),
        }
    }

    fn change_keys(&mut self) {
        let (keys, told) = match self.composer.keys() {
            ComposerKeys::Emacs => (ComposerKeys::Vi, "the keys of vi; /vi again for those of a shell"),
            ComposerKeys::Vi => (ComposerKeys::Emacs, "the keys of a shell"),
        };
        self.composer.use_keys(keys);
        self.hint(told);
    }

    pub(super) fn show_keys(&mut self) {
        let keys: &[(&str, &str)] = match self.theme.screen {
            ScreenStyle::Drawn => &KEYS,
            ScreenStyle::Lines => &KEYS_OF_LINES,
        };
        self.front = Front::Pages(Pager::of_table("Keys", keys));
    }

    pub(super) fn show_details(&mut self) {
        let sections: Vec<String> = self.transcript.details().map(str::to_owned).collect();
        match sections.is_empty() {
            true => self.hint("no calls yet"),
            false => self.front = Front::Pages(Pager::at_the_end("Calls and thoughts", sections)),
        }
    }

    pub(super) fn option_menu(&mut self, category: &SessionConfigOptionCategory) {
        let Some(option) = self.facts.option(category) else { return };
        let SessionConfigKind::Select(select) = &option.kind else { return };
        let row = |choice: &agent_client_protocol_schema::v1::SessionConfigSelectOption| MenuChoice {
            label: choice.name.clone(),
            hint: choice.description.clone().unwrap_or_default(),
            value: MenuRow::Intent(Intent::SetOption {
                option: option.id.clone(),
                value: SessionConfigOptionValue::value_id(choice.value.clone()),
            }),
            mark: if choice.value == select.current_value { Mark::Current } else { Mark::Other },
        };
        let rows = choices(select).into_iter().map(row).collect();
        self.front = Front::Menu(Picker::new(option.name.clone(), rows));
    }

    pub(super) fn mode_menu(&mut self) {
        let Some(modes) = &self.facts.modes else {
            return self.option_menu(&SessionConfigOptionCategory::Mode);
        };
        let row = |mode: &agent_client_protocol_schema::v1::SessionMode| MenuChoice {
            label: mode.name.clone(),
            hint: mode.description.clone().unwrap_or_default(),
            value: MenuRow::Intent(Intent::SetMode(mode.id.clone())),
            mark: if mode.id == modes.current_mode_id { Mark::Current } else { Mark::Other },
        };
        let rows = modes.available_modes.iter().map(row).collect();
        self.front = Front::Menu(Picker::new("Mode", rows));
    }

    pub(super) fn next_mode(&mut self) {
        let Some(modes) = &self.facts.modes else { return };
        let at = modes.available_modes.iter().position(|mode| mode.id == modes.current_mode_id);
        let next = at.map_or(0, |at| (at + 1) % modes.available_modes.len().max(1));
        if let Some(mode) = modes.available_modes.get(next) {
            self.intents.push(Intent::SetMode(mode.id.clone()));
        }
    }

    /// The newest prompt first: it is the one most often taken back.
    pub(super) fn rewind_menu(&mut self) {
        if !self.agent.can_rewind {
            return self.hint("this agent can't go back");
        }
        if self.past.is_empty() {
            return self.hint("no earlier prompt");
        }
        let row = |(name, text): &(crate::screen::intent::PromptName, String)| MenuChoice {
            label: text.lines().next().unwrap_or_default().to_owned(),
            hint: String::new(),
            value: MenuRow::Intent(Intent::Rewind(name.clone())),
            mark: Mark::Other,
        };
        let rows = self.past.iter().rev().map(row).collect();
        self.front = Front::Menu(Picker::new("Go back to before", rows));
    }
}
