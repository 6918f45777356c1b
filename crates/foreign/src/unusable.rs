//! An agent that is configured and can't be used: its sessions are told why, and its prompts fail with that.

use attache_core::ports::BoxFuture;
use attache_core::ports::foreign::{Abilities, AgentWord, SessionOpening};

use crate::ForeignError;
use crate::agent::{Decided, ForeignAgent, ForeignRun, RunRequest};

/// Says why.
#[derive(Clone, Debug)]
pub struct UnusableAgent {
    /// As the configuration says it.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What is wrong, with what to do.
    pub problem: String,
}

impl ForeignAgent for UnusableAgent {
    fn abilities(&self) -> Abilities {
        // What is wrong with the agent is the answer, whatever the prompt holds.
        let (images, audio, pdf) = (true, true, true);
        Abilities { kind: self.kind, images, audio, pdf, servers: true, runtime_context: true }
    }

    fn open(&self, opening: SessionOpening) {
        opening.news.tell(AgentWord::Notice {
            severity: "warning",
            title: format!("The agent `{}` can't be used", self.name),
            description: Some(self.problem.clone()),
        });
    }

    fn begin(&self, _request: RunRequest) -> BoxFuture<'_, Result<Box<dyn ForeignRun>, ForeignError>> {
        let text = format!("the agent `{}` can't be used: {}", self.name, self.problem);
        Box::pin(std::future::ready(Err(ForeignError::new(text))))
    }

    fn resume(
        &self,
        request: RunRequest,
        _decisions: Vec<Decided>,
    ) -> BoxFuture<'_, Option<Result<Box<dyn ForeignRun>, ForeignError>>> {
        Box::pin(async { Some(self.begin(request).await) })
    }

    fn can_resume(&self) -> bool {
        false
    }
}
