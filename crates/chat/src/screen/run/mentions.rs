//! Sessions that a prompt mentions: what was said in them takes the place of the mention before the prompt is
//! sent.

use agent_client_protocol_schema::v1::ContentBlock;

use super::EventLoop;
use super::connect::LoopEvent;
use crate::screen::composer::{embedded, session_of};
use crate::screen::intent::{Delivery, Intent, PromptName};
use crate::screen::limits::SESSION_BYTES;
use crate::screen::theme::Tone;
use attache_acp_client::{AgentAbility, AgentClient, ClientFailure};

impl EventLoop<'_> {
    /// Prompts follow each other in the order in which they were handed in.
    pub(super) fn must_wait(&self, intent: &Intent) -> bool {
        self.is_expanding && matches!(intent, Intent::Prompt { .. })
    }

    pub(super) fn mentions_sessions(&self, blocks: &[ContentBlock], client: &AgentClient) -> bool {
        client.can(AgentAbility::Extensions) && blocks.iter().any(|block| session_of(block).is_some())
    }

    pub(super) fn expand(
        &mut self,
        name: PromptName,
        blocks: Vec<ContentBlock>,
        delivery: Delivery,
        client: AgentClient,
    ) {
        self.is_expanding = true;
        let news = self.news.clone();
        tokio::spawn(async move {
            let mut expanded = Vec::with_capacity(blocks.len());
            for block in blocks {
                match session_of(&block) {
                    Some((session, title)) => match client.export(&session, "md").await {
                        Ok(text) => expanded.push(embedded(&its_end(&text), &uri_of(title))),
                        Err(failure) => {
                            let failure = ClientFailure::Own(format!("The session \"{title}\": {failure}"));
                            drop(news.send(LoopEvent::Failed(failure)));
                        }
                    },
                    None => expanded.push(block),
                }
            }
            drop(news.send(LoopEvent::Expanded(name, expanded, delivery)));
        });
    }

    pub(super) fn expanded(&mut self, name: PromptName, blocks: Vec<ContentBlock>, delivery: Delivery) {
        self.is_expanding = false;
        match (self.client.clone(), self.session.clone()) {
            _ if blocks.is_empty() => {
                self.conversation.prompt_cut(&name);
                self.note(Tone::Bad, "Nothing of the prompt was left, so it was not sent.");
            }
            (Some(client), Some(session)) if !self.is_opening => {
                self.prompt(name, blocks, delivery, &client, session);
            }
            _ => self.waiting.insert(0, Intent::Prompt { name, blocks, delivery }),
        }
        if !self.is_opening {
            let waiting = std::mem::take(&mut self.waiting);
            self.wanted_again(waiting);
        }
    }
}

/// The end of a long text, from the start of a line.
fn its_end(text: &str) -> String {
    if text.len() <= SESSION_BYTES {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - SESSION_BYTES);
    let start = text[start..].find('\n').map_or(start, |end| start + end + 1);
    format!("[the first {start} bytes of the session are left out]\n{}", &text[start..])
}

/// The session's name in the prompt.
fn uri_of(title: &str) -> String {
    let name: String = title.chars().map(|sign| if sign.is_alphanumeric() { sign } else { '-' }).collect();
    format!("session:///{}.md", name.trim_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_session_the_end_is_given() {
        assert_eq!(its_end("short"), "short");
        let long = format!("first\n{}last\n", "a line\n".repeat(SESSION_BYTES / 7));
        let end = its_end(&long);
        assert!(end.starts_with("[the first ") && end.ends_with("\na line\nlast\n"), "{}", &end[..80]);
        assert!(end.len() < SESSION_BYTES + 80);
    }

    #[test]
    fn a_title_makes_a_name() {
        assert_eq!(uri_of("Fix the 'parser' now"), "session:///Fix-the--parser--now.md");
    }
}
