//! A provider whose key is in the keyring: asks the keyring at the first request, not before.

use std::sync::Arc;

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent};
use attache_models::{HttpModel, Secret};
use futures_util::{StreamExt, stream};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::credentials::{Keyring, Patience};

/// Makes the model when it has the key.
type Make = dyn Fn(Option<Secret>) -> HttpModel + Send + Sync;

pub(super) struct KeptKey {
    provider: String,
    keyring: Keyring,
    make: Box<Make>,
    /// The model without its key: for everything but requests.
    keyless: HttpModel,
    with_key: OnceCell<HttpModel>,
}

impl std::fmt::Debug for KeptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptKey").field("keyless", &self.keyless).finish_non_exhaustive()
    }
}

/// The port is for this, so that a request can take it along.
#[derive(Clone, Debug)]
pub(super) struct SharedKeptKey(Arc<KeptKey>);

impl SharedKeptKey {
    pub(super) fn new(
        provider: &str,
        keyring: Keyring,
        make: impl Fn(Option<Secret>) -> HttpModel + Send + Sync + 'static,
    ) -> Self {
        let keyless = make(None);
        Self(Arc::new(KeptKey {
            provider: provider.to_owned(),
            keyring,
            make: Box::new(make),
            keyless,
            with_key: OnceCell::new(),
        }))
    }
}

impl KeptKey {
    async fn open(&self) -> Result<&HttpModel, ModelError> {
        self.with_key
            .get_or_try_init(|| async {
                let (keyring, provider) = (self.keyring, self.provider.clone());
                let asked = tokio::task::spawn_blocking(move || keyring.get(&provider, Patience::None)).await;
                let name = &self.provider;
                match asked {
                    Ok(Ok(secret)) => Ok((self.make)(Some(secret))),
                    Ok(Err(error)) => Err(ModelError::Auth(format!(
                        "the key of {name} is kept in the keyring, but {error}. If that does not help, run \
                         `attache auth login {name}`"
                    ))),
                    Err(error) => {
                        Err(ModelError::Permanent(format!("the keyring could not be asked: {error}")))
                    }
                }
            })
            .await
    }
}

impl Model for SharedKeptKey {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.0.keyless.available()
    }

    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.0.keyless.describe(model)
    }

    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        self.0.keyless.takes(info, mime)
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let (kept, cancelled) = (self.0.clone(), cancel.clone());
        let opening = async move {
            match kept.open().await {
                Ok(model) => model.stream(request, cancel),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(opening).flatten().take_until(cancelled.cancelled_owned()).boxed()
    }
}
