//! Why a login, or its renewal, came to nothing.

/// In words for people; what a server said is made legible before it gets here, and no secret is part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    #[error("{0}")]
    Failed(String),
    #[error("{place} can't be reached: {reason}")]
    Unreachable { place: String, reason: String },
    #[error("{place} is not asked: {reason}")]
    Refused { place: String, reason: String },
    #[error("{place} answered {problem}")]
    BadAnswer { place: String, problem: String },
    #[error("the server does not say where to log in: it asks for no login, or for a header with a token")]
    NoLogin,
    #[error("the server says that it is another one ({said}); tokens for that one are not for it")]
    OtherResource { said: String },
    #[error("{place} says that it is another authorization server ({said})")]
    OtherIssuer { place: String, said: String },
    #[error("the authorization server {0} can't prove that an answer is for us (PKCE with S256)")]
    NoProof(String),
    #[error(
        "the authorization server {0} does not let programs register themselves: register attache there, and write \
         client_id into [mcp.NAME.oauth]"
    )]
    NoRegistration(String),
    /// The token endpoint's error: a code of RFC 6749, and its description if there is one.
    #[error("the authorization server refused: {code}{description}")]
    Denied { code: String, description: String },
    #[error("the token is for {0}, not for this server")]
    OtherAudience(String),
    #[error("the answer of the browser is not from the authorization server that was asked ({0})")]
    MixedUp(String),
    #[error("nobody logged in within {0} minutes")]
    Late(u64),
    #[error("the login can't be kept: {0}")]
    Store(String),
}

impl OAuthError {
    /// The refresh token, or the client itself, is no longer known: only a person can go on.
    pub(super) fn is_final(&self) -> bool {
        let codes = ["invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope"];
        match self {
            Self::Denied { code, .. } => codes.contains(&code.as_str()),
            Self::OtherAudience(_) => true,
            Self::Failed(_)
            | Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::BadAnswer { .. }
            | Self::NoLogin
            | Self::OtherResource { .. }
            | Self::OtherIssuer { .. }
            | Self::NoProof(_)
            | Self::NoRegistration(_)
            | Self::MixedUp(_)
            | Self::Late(_)
            | Self::Store(_) => false,
        }
    }

    pub(super) fn is_about_client(&self) -> bool {
        matches!(self, Self::Denied { code, .. } if code == "invalid_client" || code == "unauthorized_client")
    }
}
