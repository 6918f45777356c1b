//! The slash commands that go back in a session: `/undo`, `/redo`, `/rewind` and `/fork`. They use the same
//! functions as the requests of clients.

use super::rewind::PromptPlace;
use super::{ClientSide, Session};
use crate::fork::{ForkPoint, copy_before};
use crate::hub::{HubError, NewSession, SessionPlace};
use crate::ids::MessageId;
use crate::legible::visible_name;
use crate::limits::{LISTED_PROMPT_CHARACTERS, PROMPTS_LISTED};
use crate::prompt::text_of;
use crate::rewind::{MovedFiles, Rewound};

pub(crate) async fn undo(session: &mut Session, _arguments: &str) -> Result<String, HubError> {
    let last = session.last_prompts(1).await?.pop();
    let Some(place) = last else { return Ok("There is no turn to take back.".to_owned()) };
    let client = session.client_of_command();
    let rewound = session.rewind_to(place, client).await?;
    Ok(told(session, "Taken back", &rewound, "`/redo` brings it back until the next prompt."))
}

pub(crate) async fn redo(session: &mut Session, _arguments: &str) -> Result<String, HubError> {
    let client = session.client_of_command();
    let unrewound = session.take_rewind_back(client).await?;
    let head = format!("Brought back: {}.", counted(unrewound.restored));
    Ok(with_files(session, head, unrewound.files.as_ref()))
}

pub(crate) async fn rewind(session: &mut Session, wanted: &str) -> Result<String, HubError> {
    if wanted.is_empty() {
        return listed(session, "rewind", "go back to before it").await;
    }
    let place = named(session, wanted).await?;
    let client = session.client_of_command();
    let rewound = session.rewind_to(place, client).await?;
    Ok(told(session, "Back to before", &rewound, "`/redo` takes that back until the next prompt."))
}

pub(crate) async fn fork(session: &mut Session, wanted: &str) -> Result<String, HubError> {
    let point = match wanted {
        "" => ForkPoint::End,
        wanted => ForkPoint::Message(named(session, wanted).await?.message_id),
    };
    let record = session.read_record().await?;
    let root = session.row.workspace_root.clone();
    let (additional, servers) = (session.workspace().additional, session.servers.requested().to_vec());
    let end = session.end_of_the_past();
    let new = NewSession { root, place: SessionPlace { additional, servers } };
    let copy = copy_before(&session.hub.ports, record, &point, end, new).await?;
    Ok(format!("Copied to session `{copy}`; load it to go on there."))
}

impl Session {
    /// The client that typed the command, if it does some work itself.
    fn client_of_command(&self) -> ClientSide {
        self.activity.running().and_then(|running| running.handle.client.clone())
    }
}

/// The prompt with this number in the list, or with this id.
async fn named(session: &Session, wanted: &str) -> Result<PromptPlace, HubError> {
    let Ok(number) = wanted.parse::<usize>() else {
        return session.prompt_place(&MessageId::new(wanted)).await;
    };
    let mut prompts = session.last_prompts(number.min(PROMPTS_LISTED)).await?;
    if number == 0 || number > prompts.len() {
        return Err(HubError::Invalid(format!(
            "there is no prompt {number}: the list has {} (1 is the latest); name older ones by their id",
            prompts.len()
        )));
    }
    Ok(prompts.swap_remove(number - 1))
}

async fn listed(session: &Session, command: &str, does: &str) -> Result<String, HubError> {
    let prompts = session.last_prompts(PROMPTS_LISTED).await?;
    if prompts.is_empty() {
        return Ok("There are no prompts yet.".to_owned());
    }
    let line = |(nth, place): (usize, &PromptPlace)| {
        format!("{}. {} (`{}`)", nth + 1, excerpt(&text_of(&place.parts)), place.message_id)
    };
    let lines: Vec<_> = prompts.iter().enumerate().map(line).collect();
    Ok(format!("The last prompts, `/{command} NUMBER` to {does}:\n\n{}", lines.join("\n")))
}

/// The first line of a prompt that is not blank, cut for a list.
fn excerpt(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    let short: String = line.chars().take(LISTED_PROMPT_CHARACTERS).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    format!("`{}{more}`", visible_name(&short).replace('`', "'"))
}

fn told(session: &Session, what: &str, rewound: &Rewound, how_back: &str) -> String {
    let prompt = excerpt(&text_of(&rewound.parts));
    let head = format!("{what}: {prompt} ({}). {how_back}", counted(rewound.hidden));
    with_files(session, head, rewound.files.as_ref())
}

fn with_files(session: &Session, head: String, files: Option<&MovedFiles>) -> String {
    let files = files.map(|files| files.in_words(&session.row.workspace_root)).unwrap_or_default();
    if files.is_empty() { head } else { format!("{head}\n\n{files}") }
}

fn counted(messages: u64) -> String {
    format!("{messages} {}", if messages == 1 { "message" } else { "messages" })
}
