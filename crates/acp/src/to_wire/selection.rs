//! Modes and config options: the choices and the current values, in the form clients list them.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectGroup, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionMode, SessionModeState,
};
use attache_core::choices::{Choices, Chosen};
use attache_core::ports::foreign::AgentOption;
use attache_core::ports::model::ThoughtLevel;
use attache_core::ports::store::ModelRef;
use attache_core::watchdog::Approval;

/// The ids of our config options.
pub const MODE_OPTION: &str = "mode";
/// The option that chooses the model.
pub const MODEL_OPTION: &str = "model";
/// The option that sets how much the model thinks.
pub const THOUGHT_OPTION: &str = "thought_level";
/// The option that sets what runs without a question.
pub const APPROVAL_OPTION: &str = "approval";

/// Prefix of the options of an agent that runs elsewhere, so that they differ from ours.
pub const AGENT_OPTION: &str = "agent.";

/// The value that lets the model decide how much it thinks.
pub const DEFAULT_THOUGHT: &str = "default";

/// The agents that a session can have as its mode.
pub fn modes(chosen: &Chosen) -> SessionModeState {
    let available = chosen.modes.iter().map(|mode| {
        SessionMode::new(mode.id.clone(), mode.name.clone()).description(described(&mode.description))
    });
    SessionModeState::new(chosen.agent.clone(), available.collect())
}

/// The complete list of options.
pub fn config_options(choices: &Choices, chosen: &Chosen) -> Vec<SessionConfigOption> {
    let modes: Vec<_> = chosen
        .modes
        .iter()
        .map(|mode| {
            SessionConfigSelectOption::new(mode.id.clone(), mode.name.clone())
                .description(described(&mode.description))
        })
        .collect();
    let mode = SessionConfigOption::select(MODE_OPTION, "Mode", chosen.agent.clone(), modes)
        .category(SessionConfigOptionCategory::Mode);
    let mut options = vec![mode];
    if let Some(model) = &chosen.model {
        let listed = models(choices, model);
        let option = SessionConfigOption::select(MODEL_OPTION, "Model", model.to_string(), listed);
        options.push(option.category(SessionConfigOptionCategory::Model));
    }
    if !chosen.thought_levels.is_empty() {
        options.push(thought(chosen));
    }
    options.push(approval(chosen.approval));
    options.extend(chosen.options.iter().map(of_agent));
    options
}

/// An option of an agent that runs elsewhere.
fn of_agent(option: &AgentOption) -> SessionConfigOption {
    let values: Vec<_> = option
        .values
        .iter()
        .map(|known| {
            SessionConfigSelectOption::new(known.value.clone(), known.name.clone())
                .description(known.description.clone())
        })
        .collect();
    let id = format!("{AGENT_OPTION}{}", option.id);
    let select = SessionConfigOption::select(id, option.name.clone(), option.current.clone(), values)
        .description(option.description.clone());
    match option.category.as_deref() {
        Some("model") => select.category(SessionConfigOptionCategory::Model),
        Some("thought_level") => select.category(SessionConfigOptionCategory::ThoughtLevel),
        // `mode` is our own option, which chooses the agent.
        Some(_) | None => select.category(SessionConfigOptionCategory::Other("_agent".to_owned())),
    }
}

/// Grouped by provider, in the order of their first model. A single provider gets no group, because some
/// clients do not show groups.
fn models(choices: &Choices, current: &ModelRef) -> SessionConfigSelectOptions {
    let mut groups: Vec<SessionConfigSelectGroup> = Vec::new();
    for info in choices.models.iter() {
        let option = SessionConfigSelectOption::new(info.model.to_string(), info.name.clone());
        add(&mut groups, &info.model.provider_id, option);
    }
    if choices.model(current).is_none() {
        // Its provider does not list the model, or it is no longer usable; the list must contain the current
        // value.
        let option = SessionConfigSelectOption::new(current.to_string(), current.model_id.clone());
        add(&mut groups, &current.provider_id, option);
    }
    match groups.len() {
        1 => groups.remove(0).options.into(),
        _ => groups.into(),
    }
}

/// How much the model thinks: only the levels of this model.
fn thought(chosen: &Chosen) -> SessionConfigOption {
    let by_itself = SessionConfigSelectOption::new(DEFAULT_THOUGHT, "Default")
        .description("The model's own default".to_owned());
    let levels = chosen
        .thought_levels
        .iter()
        .map(|level| SessionConfigSelectOption::new(level.as_str(), thought_name(*level)));
    let options: Vec<_> = std::iter::once(by_itself).chain(levels).collect();
    let current = chosen.thought.map_or(DEFAULT_THOUGHT, ThoughtLevel::as_str);
    SessionConfigOption::select(THOUGHT_OPTION, "Thinking", current, options)
        .category(SessionConfigOptionCategory::ThoughtLevel)
}

fn thought_name(level: ThoughtLevel) -> &'static str {
    match level {
        ThoughtLevel::Off => "Off",
        ThoughtLevel::Low => "Low",
        ThoughtLevel::Medium => "Medium",
        ThoughtLevel::High => "High",
        ThoughtLevel::Max => "Maximum",
    }
}

fn approval(current: Approval) -> SessionConfigOption {
    let option = |approval: Approval| {
        let (name, description) = match approval {
            Approval::Ask => ("Ask", "Asks before changes, and before commands that do more than read."),
            Approval::Edits => {
                ("Accept edits", "Edits files in the workspace without asking. Asks before commands.")
            }
            Approval::All => (
                "Accept everything",
                "Asks for nothing within reach. Needs the full sandbox, or `--sandbox off`.",
            ),
        };
        SessionConfigSelectOption::new(approval.as_str(), name).description(description.to_owned())
    };
    let options: Vec<_> = Approval::ALL.into_iter().map(option).collect();
    // The protocol has no category for it; custom categories begin with an underscore.
    SessionConfigOption::select(APPROVAL_OPTION, "Approval", current.as_str(), options)
        .category(SessionConfigOptionCategory::Other("_approval".to_owned()))
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
