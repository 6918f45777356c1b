//! Questions for models that outlive the look that asked them: a session waits only for a moment, and a slow
//! server's answer counts from when it comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use attache_core::ports::BoxFuture;
use attache_core::ports::model::ModelInfo;
use attache_models::{DiscoverError, Endpoint, Http, ListWait, list_address, models_of};
use futures_util::FutureExt;
use futures_util::future::{Shared, join_all};

use super::live::LiveState;
use crate::limits::{ANSWER, DETAILS};

pub(super) type ListAnswer = Result<Vec<ModelInfo>, DiscoverError>;

/// One question per provider at most. A cheap handle.
#[derive(Clone, Debug)]
pub(super) struct Inquiries {
    /// The receiver of late answers.
    providers: Weak<LiveState>,
    /// A lock, because looks and answers come at any time. Held only for a lookup.
    under_way: Arc<Mutex<HashMap<String, Inquiry>>>,
}

#[derive(Debug)]
struct Inquiry {
    endpoint: Endpoint,
    answer: Shared<BoxFuture<'static, ListAnswer>>,
    /// The look that asked it has stopped waiting.
    is_late: bool,
}

impl Inquiries {
    pub(super) fn new(providers: Weak<LiveState>) -> Self {
        Self { providers, under_way: Arc::default() }
    }

    /// The answer, if it comes in time. Does not repeat a question in progress.
    pub(super) async fn ask(
        &self,
        http: &Http,
        name: &str,
        endpoint: &Endpoint,
        wait: Duration,
    ) -> ListAnswer {
        let answer = self.begin(http, name, endpoint);
        if let Ok(answer) = tokio::time::timeout(wait, answer.clone()).await {
            return answer;
        }
        let is_late = match self.lock().get_mut(name) {
            Some(inquiry) => {
                inquiry.is_late = true;
                true
            }
            None => false,
        };
        if is_late {
            return Err(DiscoverError::TooSlow { url: list_address(endpoint), after: wait });
        }
        // It has just come.
        answer.await
    }

    /// Completes when all late answers have come, or failed.
    pub(super) fn late(&self) -> Option<BoxFuture<'static, ()>> {
        let late: Vec<_> =
            self.lock().values().filter(|one| one.is_late).map(|one| one.answer.clone()).collect();
        if late.is_empty() {
            return None;
        }
        Some(join_all(late).map(drop).boxed())
    }

    fn begin(&self, http: &Http, name: &str, endpoint: &Endpoint) -> Shared<BoxFuture<'static, ListAnswer>> {
        let mut under_way = self.lock();
        // After a login we ask the same server with another key, so the old question does not count.
        if let Some(inquiry) = under_way.get(name).filter(|inquiry| is_same(&inquiry.endpoint, endpoint)) {
            return inquiry.answer.clone();
        }
        let asked = tokio::spawn(self.clone().hear(http.clone(), name.to_owned(), endpoint.clone()));
        let url = list_address(endpoint);
        let answer = asked.map(|heard| {
            heard.unwrap_or_else(|error| Err(DiscoverError::Unreachable { url, reason: error.to_string() }))
        });
        let answer = answer.boxed().shared();
        let inquiry = Inquiry { endpoint: endpoint.clone(), answer: answer.clone(), is_late: false };
        under_way.insert(name.to_owned(), inquiry);
        answer
    }

    async fn hear(self, http: Http, name: String, endpoint: Endpoint) -> ListAnswer {
        let wait = ListWait { deadline: ANSWER, details: DETAILS };
        let answer = models_of(&http, &name, &endpoint, wait).await;
        let heard = {
            let mut under_way = self.lock();
            let is_ours = under_way.get(&name).is_some_and(|inquiry| is_same(&inquiry.endpoint, &endpoint));
            if is_ours { under_way.remove(&name) } else { None }
        };
        let is_late = heard.is_some_and(|inquiry| inquiry.is_late);
        if let (true, Ok(models), Some(providers)) = (is_late, &answer, self.providers.upgrade())
            && !models.is_empty()
        {
            providers.land(&name, models);
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Inquiry>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same(asked: &Endpoint, endpoint: &Endpoint) -> bool {
    asked.base_url == endpoint.base_url && asked.key == endpoint.key
}
