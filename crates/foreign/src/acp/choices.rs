//! Modes and config options of an ACP agent as options of our session, and back. Asks nobody.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionModeState,
};
use attache_core::legible::legible_line;
use attache_core::ports::foreign::{
    AgentCommand, AgentOption, AgentOptionValue, ChosenOptions, MODE_CATEGORY,
};

use crate::limits::COMMANDS;

/// Its modes, which are no config option of its own.
const MODES: &str = "mode";

const ON: &str = "true";
const OFF: &str = "false";

/// What can be chosen of an agent in one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AgentChoices {
    pub(super) modes: Option<SessionModeState>,
    pub(super) options: Vec<SessionConfigOption>,
    /// What can be typed, once the agent has said so.
    pub(super) commands: Vec<AgentCommand>,
}

/// Something to tell the agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AgentChoice {
    Mode(String),
    Option { id: String, value: SessionConfigOptionValue },
}

impl AgentChoices {
    /// As our session shows them.
    pub(super) fn listed(&self) -> Vec<AgentOption> {
        let mut listed = Vec::new();
        // An agent that tells its modes as an option, too, tells the same.
        let is_mode = |option: &SessionConfigOption| {
            *option.id.0 == *MODES || option.category == Some(SessionConfigOptionCategory::Mode)
        };
        let has_mode = self.options.iter().any(is_mode);
        if let Some(modes) =
            self.modes.as_ref().filter(|modes| !has_mode && !modes.available_modes.is_empty())
        {
            listed.push(mode_option(modes));
        }
        listed.extend(self.options.iter().filter_map(listed_option));
        listed
    }

    /// The next thing to be told so that what was chosen holds; `None` when it does. What the agent does not
    /// have any more is passed over.
    pub(super) fn next(&self, chosen: &ChosenOptions, told: &[AgentChoice]) -> Option<AgentChoice> {
        let listed = self.listed();
        listed.iter().find_map(|option| {
            let value = chosen.get(&option.id).filter(|value| **value != option.current)?;
            option.values.iter().find(|known| known.value == *value)?;
            let choice = self.choice(&option.id, value)?;
            // An agent that does not take what it offers is not told for ever.
            (!told.contains(&choice)).then_some(choice)
        })
    }

    fn choice(&self, id: &str, value: &str) -> Option<AgentChoice> {
        let Some(option) = self.options.iter().find(|option| *option.id.0 == *id) else {
            return (id == MODES).then(|| AgentChoice::Mode(value.to_owned()));
        };
        let value = match option.kind {
            SessionConfigKind::Boolean(_) => SessionConfigOptionValue::boolean(value == ON),
            _ => SessionConfigOptionValue::value_id(value.to_owned()),
        };
        Some(AgentChoice::Option { id: option.id.0.to_string(), value })
    }

    /// As lists of commands show them: names without blanks, and no more of them than anybody reads.
    pub(super) fn took_commands(&mut self, commands: Vec<AvailableCommand>) {
        let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
        let commands = commands.into_iter().filter(|command| is_name(&command.name)).take(COMMANDS);
        let taken = commands.map(|command| AgentCommand {
            input_hint: command.input.and_then(|input| match input {
                AvailableCommandInput::Unstructured(input) => Some(legible_line(&input.hint)),
                _ => None,
            }),
            name: legible_line(&command.name),
            description: legible_line(&command.description),
        });
        self.commands = taken.collect();
    }

    /// What was told holds now.
    pub(super) fn took_mode(&mut self, mode: &str) {
        if let Some(modes) = &mut self.modes {
            modes.current_mode_id = mode.to_owned().into();
        }
    }
}

fn mode_option(modes: &SessionModeState) -> AgentOption {
    let value = |mode: &agent_client_protocol_schema::v1::SessionMode| AgentOptionValue {
        value: mode.id.0.to_string(),
        name: mode.name.clone(),
        description: mode.description.clone(),
    };
    AgentOption {
        id: MODES.to_owned(),
        name: "Mode of the agent".to_owned(),
        description: None,
        category: Some(MODE_CATEGORY.to_owned()),
        current: modes.current_mode_id.0.to_string(),
        values: modes.available_modes.iter().map(value).collect(),
    }
}

/// `None` for one that nobody can choose from, or of a newer kind.
fn listed_option(option: &SessionConfigOption) -> Option<AgentOption> {
    let (current, values) = match &option.kind {
        SessionConfigKind::Select(select) => {
            (select.current_value.0.to_string(), select_values(&select.options))
        }
        SessionConfigKind::Boolean(boolean) => {
            let value = |value: &str, name: &str| AgentOptionValue {
                value: value.to_owned(),
                name: name.to_owned(),
                description: None,
            };
            let current = if boolean.current_value { ON } else { OFF };
            (current.to_owned(), vec![value(ON, "On"), value(OFF, "Off")])
        }
        _ => return None,
    };
    (!values.is_empty()).then(|| AgentOption {
        id: option.id.0.to_string(),
        name: option.name.clone(),
        description: option.description.clone(),
        category: option.category.as_ref().and_then(category),
        current,
        values,
    })
}

fn select_values(options: &SessionConfigSelectOptions) -> Vec<AgentOptionValue> {
    let value = |option: &SessionConfigSelectOption| AgentOptionValue {
        value: option.value.0.to_string(),
        name: option.name.clone(),
        description: option.description.clone(),
    };
    match options {
        SessionConfigSelectOptions::Ungrouped(options) => options.iter().map(value).collect(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).map(value).collect()
        }
        _ => Vec::new(),
    }
}

fn category(category: &SessionConfigOptionCategory) -> Option<String> {
    Some(match category {
        SessionConfigOptionCategory::Mode => MODE_CATEGORY.to_owned(),
        SessionConfigOptionCategory::Model => "model".to_owned(),
        SessionConfigOptionCategory::ThoughtLevel => "thought_level".to_owned(),
        SessionConfigOptionCategory::Other(other) => other.clone(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol_schema::v1::SessionMode;
    use serde_json::json;

    fn goose() -> AgentChoices {
        let options = json!([
            { "id": "provider", "name": "Provider", "type": "select", "currentValue": "openai",
              "options": [{ "value": "openai", "name": "OpenAI" }, { "value": "ollama", "name": "Ollama" }] },
            { "id": "approval", "name": "Approval", "type": "select", "currentValue": "a",
              "options": [{ "group": "g", "name": "G", "options": [{ "value": "a", "name": "A" }] }] },
            { "id": "fast", "name": "Fast", "type": "boolean", "currentValue": false },
        ]);
        let mode = |id: &str| SessionMode::new(id.to_owned(), id.to_owned());
        AgentChoices {
            modes: Some(SessionModeState::new("auto".to_owned(), vec![mode("auto"), mode("approve")])),
            options: serde_json::from_value(options).unwrap(),
            commands: Vec::new(),
        }
    }

    #[test]
    fn modes_and_options_are_listed() {
        let listed = goose().listed();
        let ids: Vec<&str> = listed.iter().map(|option| option.id.as_str()).collect();
        assert_eq!(ids, ["mode", "provider", "approval", "fast"]);
        assert_eq!((listed[0].current.as_str(), listed[3].current.as_str()), ("auto", "false"));
        assert_eq!(listed[2].values[0].value, "a");
    }

    #[test]
    fn the_agent_is_told_what_does_not_hold_yet_and_each_only_once() {
        let choices = goose();
        let chosen = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect::<ChosenOptions>()
        };
        assert_eq!(
            choices.next(&chosen(&[("provider", "openai"), ("gone", "x"), ("fast", "maybe")]), &[]),
            None
        );
        let wanted = chosen(&[("mode", "approve"), ("fast", "true")]);
        let first = choices.next(&wanted, &[]).unwrap();
        assert_eq!(first, AgentChoice::Mode("approve".into()));
        let second = choices.next(&wanted, std::slice::from_ref(&first)).unwrap();
        assert_eq!(
            second,
            AgentChoice::Option { id: "fast".into(), value: SessionConfigOptionValue::boolean(true) }
        );
        assert_eq!(choices.next(&wanted, &[first, second]), None);
    }
}
