//! Pictures as providers take them: scaled or converted where they have to be. Knows no provider.

use std::fmt::Debug;

use super::BoxFuture;

/// Brings pictures into a form that providers take.
pub trait Pictures: Send + Sync + Debug {
    /// What every provider takes in place of this picture; `None`: it is taken as it is. The error says why it
    /// can't be, and what a person can do. The same bytes give the same picture.
    fn fit(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<Option<FittedPicture>, String>>;
}

/// A picture that providers take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedPicture {
    /// What it is.
    pub mime: &'static str,
    /// The whole file.
    pub bytes: Vec<u8>,
}
