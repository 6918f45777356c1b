//! Makes pictures acceptable to providers: scales or converts them if necessary. Knows no provider.

use std::fmt::Debug;

use super::BoxFuture;

/// Brings pictures into a form that providers accept.
pub trait Pictures: Send + Sync + Debug {
    /// A picture that every provider accepts in place of this one; `None`: this one is fine. The error says why
    /// there is none, and what a person can do. The same bytes give the same picture.
    fn fit(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<Option<FittedPicture>, String>>;
}

/// A picture that providers accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedPicture {
    /// Its type.
    pub mime: &'static str,
    /// The whole file.
    pub bytes: Vec<u8>,
}
