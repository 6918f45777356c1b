//! Model, mode and approval of a run, set in an open session where it does not have them already.

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelect, SessionConfigSelectOptions,
};
use attache_rpc::code;

use crate::limits::NAMED_CHOICES;
use attache_acp_client::{AgentAbility, AgentClient, ClientFailure, OpenedSession};

/// The choices of a run; `None` leaves one to the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunChoices {
    pub model: Option<String>,
    /// Agents of attache are modes.
    pub mode: Option<String>,
    pub approval: Option<String>,
}

/// Why a choice can't be had.
#[derive(Debug)]
pub(super) enum Unchosen {
    Failed(ClientFailure),
    Unfit(String),
    /// The agent has no such thing.
    Unknown(String),
}

impl From<ClientFailure> for Unchosen {
    fn from(failure: ClientFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Gives the options as they are then, if the agent has said so.
pub(super) async fn choose(
    client: AgentClient,
    session: OpenedSession,
    wanted: RunChoices,
) -> Result<Option<Vec<SessionConfigOption>>, Unchosen> {
    let mut now = None;
    // The mode first: it may bring a model of its own.
    if let Some(mode) = &wanted.mode {
        choose_mode(&client, &session, mode).await?;
    }
    for (wanted, category, id, name) in [
        (&wanted.model, Some(SessionConfigOptionCategory::Model), "model", "model"),
        (&wanted.approval, None, "approval", "approval"),
    ] {
        let Some(wanted) = wanted else { continue };
        let option = session
            .config_options
            .iter()
            .find(|option| category.is_some() && option.category == category)
            .or_else(|| session.config_options.iter().find(|option| *option.id.0 == *id));
        let Some(option) = option else {
            return Err(Unchosen::Unfit(format!("{} offers no choice of {name}", client.agent_name())));
        };
        let value = match value_of(option, name, wanted) {
            // attache may take values that it does not list, or says why not.
            Err(Unchosen::Unknown(_)) if client.can(AgentAbility::Extensions) => {
                Some(SessionConfigOptionValue::value_id(wanted.clone()))
            }
            value => value?,
        };
        if let Some(value) = value {
            let id = option.id.0.to_string();
            let set = client.set_config_option(session.session_id.clone(), &id, value).await;
            now = Some(set.map_err(|failure| match failure {
                ClientFailure::Refused { error, .. } if error.code == code::INVALID_PARAMS => {
                    Unchosen::Unknown(error.message)
                }
                failure => Unchosen::Failed(failure),
            })?);
        }
    }
    Ok(now)
}

async fn choose_mode(client: &AgentClient, session: &OpenedSession, wanted: &str) -> Result<(), Unchosen> {
    if let Some(modes) = &session.modes {
        if *modes.current_mode_id.0 == *wanted {
            return Ok(());
        }
        if modes.available_modes.iter().any(|mode| *mode.id.0 == *wanted) {
            return Ok(client.set_mode(session.session_id.clone(), wanted).await?);
        }
        let known: Vec<&str> = modes.available_modes.iter().map(|mode| &*mode.id.0).collect();
        return Err(Unchosen::Unknown(unknown("mode", wanted, &known)));
    }
    let category = Some(SessionConfigOptionCategory::Mode);
    match session.config_options.iter().find(|option| option.category == category) {
        Some(option) => {
            if let Some(value) = value_of(option, "mode", wanted)? {
                let id = option.id.0.to_string();
                client.set_config_option(session.session_id.clone(), &id, value).await?;
            }
            Ok(())
        }
        None => Err(Unchosen::Unfit(format!("{} offers no choice of modes", client.agent_name()))),
    }
}

/// `None` if it is chosen already.
fn value_of(
    option: &SessionConfigOption,
    name: &str,
    wanted: &str,
) -> Result<Option<SessionConfigOptionValue>, Unchosen> {
    let SessionConfigKind::Select(select) = &option.kind else {
        return Err(Unchosen::Unfit(format!("the choice of {name} is none of values")));
    };
    if *select.current_value.0 == *wanted {
        return Ok(None);
    }
    let offered = offered(select);
    match offered.iter().find(|(value, label)| *value == wanted || *label == wanted) {
        Some((value, _)) => Ok(Some(SessionConfigOptionValue::value_id((*value).to_owned()))),
        None => {
            let known: Vec<&str> = offered.iter().map(|(value, _)| *value).collect();
            Err(Unchosen::Unknown(unknown(name, wanted, &known)))
        }
    }
}

fn offered(select: &SessionConfigSelect) -> Vec<(&str, &str)> {
    match &select.options {
        SessionConfigSelectOptions::Ungrouped(options) => {
            options.iter().map(|option| (&*option.value.0, option.name.as_str())).collect()
        }
        SessionConfigSelectOptions::Grouped(groups) => groups
            .iter()
            .flat_map(|group| group.options.iter().map(|option| (&*option.value.0, option.name.as_str())))
            .collect(),
        _ => Vec::new(),
    }
}

fn unknown(name: &str, wanted: &str, known: &[&str]) -> String {
    let more = known.len().saturating_sub(NAMED_CHOICES);
    let mut listed = known[..known.len() - more].join(", ");
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    format!("the agent has no {name} {wanted:?}; known: {listed}")
}
