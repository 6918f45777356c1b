//! The sessions that `@` can mention: by their titles, of this directory. What is said in one is fetched when a
//! prompt with it is sent.

use agent_client_protocol_schema::v1::{ContentBlock, ResourceLink, SessionId, SessionInfo};

use crate::screen::limits::{SESSION_TITLE_CHARS, SESSIONS_OFFERED};

/// How the link to a session begins until it is sent.
const SCHEME: &str = "session:///";

#[derive(Debug, Default)]
pub(crate) struct KnownSessions {
    /// The latest first.
    known: Vec<KnownSession>,
}

#[derive(Debug)]
struct KnownSession {
    id: SessionId,
    title: String,
    day: String,
}

impl KnownSessions {
    /// In the place of those that were known.
    pub(crate) fn set(&mut self, sessions: Vec<SessionInfo>) {
        let known = |session: SessionInfo| {
            let title = mentionable(session.title.as_deref()?)?;
            let day = session.updated_at.unwrap_or_default().chars().take(10).collect();
            Some(KnownSession { id: session.session_id, title, day })
        };
        self.known = sessions.into_iter().filter_map(known).collect();
    }

    /// Titles with all these letters in one piece, and the day of each.
    pub(super) fn matching(&self, typed: &str) -> impl Iterator<Item = (&str, &str)> {
        let wanted = typed.trim_start_matches('"').to_lowercase();
        let fits = move |session: &&KnownSession| session.title.to_lowercase().contains(&wanted);
        self.known.iter().filter(fits).take(SESSIONS_OFFERED).map(|session| (&*session.title, &*session.day))
    }

    pub(super) fn link(&self, title: &str) -> Option<ResourceLink> {
        let session = self.known.iter().find(|session| session.title == title)?;
        Some(ResourceLink::new(session.title.clone(), format!("{SCHEME}{}", session.id.0)))
    }
}

/// The session that a block of a prompt mentions.
pub(crate) fn session_of(block: &ContentBlock) -> Option<(SessionId, &str)> {
    match block {
        ContentBlock::ResourceLink(link) => {
            Some((SessionId::new(link.uri.strip_prefix(SCHEME)?.to_owned()), &link.name))
        }
        _ => None,
    }
}

/// A title as it can stand in quotes on one line; `None` for one without any letter.
fn mentionable(title: &str) -> Option<String> {
    let words: Vec<&str> = title.split_whitespace().collect();
    let title: String = words.join(" ").replace('"', "'").chars().take(SESSION_TITLE_CHARS).collect();
    (!title.trim().is_empty()).then(|| title.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_mentioned_by_its_title() {
        let mut sessions = KnownSessions::default();
        let info = |id: &str, title: &str| SessionInfo::new(id.to_owned(), "/w").title(title.to_owned());
        sessions.set(vec![info("s1", "Fix the \"parser\"\n now"), info("s2", "Other"), info("s3", " ")]);
        let found: Vec<_> = sessions.matching("PARS").map(|(title, _)| title).collect();
        assert_eq!(found, ["Fix the 'parser' now"]);
        assert_eq!(sessions.matching("").count(), 2);
        let link = ContentBlock::ResourceLink(sessions.link("Other").unwrap());
        assert_eq!(session_of(&link), Some((SessionId::new("s2"), "Other")));
        assert_eq!(session_of(&"session:///s2".into()), None);
    }
}
