//! Modes and config options: what can be chosen and what is chosen, as clients list it.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectGroup, SessionConfigSelectOption,
    SessionMode, SessionModeState,
};
use attache_core::choices::{Choices, Chosen};

/// The ids of our config options.
pub const MODE_OPTION: &str = "mode";
pub const MODEL_OPTION: &str = "model";

pub fn modes(choices: &Choices, chosen: &Chosen) -> SessionModeState {
    let available = choices.modes.iter().map(|mode| {
        SessionMode::new(mode.id.clone(), mode.name.clone()).description(described(&mode.description))
    });
    SessionModeState::new(chosen.agent.clone(), available.collect())
}

/// The complete list.
pub fn config_options(choices: &Choices, chosen: &Chosen) -> Vec<SessionConfigOption> {
    options(choices, &chosen.agent, &chosen.model.to_string())
}

pub(super) fn options(choices: &Choices, agent: &str, model: &str) -> Vec<SessionConfigOption> {
    let modes: Vec<_> = choices
        .modes
        .iter()
        .map(|mode| {
            SessionConfigSelectOption::new(mode.id.clone(), mode.name.clone())
                .description(described(&mode.description))
        })
        .collect();
    vec![
        SessionConfigOption::select(MODE_OPTION, "Mode", agent.to_owned(), modes)
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(MODEL_OPTION, "Model", model.to_owned(), models(choices, model))
            .category(SessionConfigOptionCategory::Model),
    ]
}

/// Grouped by provider, in the order of their first model.
fn models(choices: &Choices, current: &str) -> Vec<SessionConfigSelectGroup> {
    let mut groups: Vec<SessionConfigSelectGroup> = Vec::new();
    let mut known = false;
    for info in choices.models.iter() {
        let value = info.model.to_string();
        known |= value == current;
        add(&mut groups, &info.model.provider_id, SessionConfigSelectOption::new(value, info.name.clone()));
    }
    if !known {
        // A session may have been left with a model that is configured no longer: the current value must be listed.
        let provider = current.split('/').next().unwrap_or(current);
        add(&mut groups, provider, SessionConfigSelectOption::new(current.to_owned(), current.to_owned()));
    }
    groups
}

fn add(groups: &mut Vec<SessionConfigSelectGroup>, provider: &str, option: SessionConfigSelectOption) {
    match groups.iter_mut().find(|group| &*group.group.0 == provider) {
        Some(group) => group.options.push(option),
        None => groups.push(SessionConfigSelectGroup::new(provider.to_owned(), provider, vec![option])),
    }
}

fn described(description: &str) -> Option<String> {
    Some(description.to_owned()).filter(|description| !description.is_empty())
}
