//! Why a request got no answer: in words for a person, and whether a retry can help. Looks only at the error.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// What went wrong before an answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransportError {
    pub(crate) kind: TransportErrorKind,
    /// The innermost reason: "connection refused", not "error sending request".
    pub(crate) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportErrorKind {
    /// The server may be reachable in a moment.
    Passing,
    /// A retry changes nothing: the name does not exist, or the server speaks no TLS.
    Lasting,
    /// We do not trust the server's certificate.
    Certificate,
}

impl TransportError {
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let host = error.url().and_then(|url| url.host_str()).unwrap_or("the server").to_owned();
        let mut reason = error.to_string();
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(inner) = source {
            if let Some(trouble) = tls_error(inner).and_then(|tls| of_tls(tls, &host)) {
                return trouble;
            }
            reason = inner.to_string();
            source = inner.source();
        }
        let kind = match error.is_builder() || is_unknown_name(&reason) {
            true => TransportErrorKind::Lasting,
            false => TransportErrorKind::Passing,
        };
        Self { kind, reason }
    }
}

/// `io::Error::source` skips the error it wraps, which may itself wrap another.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => tls_error(io.get_ref()?),
        None => error.downcast_ref(),
    }
}

fn of_tls(error: &rustls::Error, host: &str) -> Option<TransportError> {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            let reason = format!("the certificate of {host} is not trusted: {}", certificate_words(why));
            Some(TransportError { kind: TransportErrorKind::Certificate, reason })
        }
        rustls::Error::InvalidMessage(_) => Some(TransportError {
            kind: TransportErrorKind::Lasting,
            reason: format!("{host} does not speak TLS there; perhaps the address has to begin with http://"),
        }),
        rustls::Error::PeerIncompatible(_) | rustls::Error::AlertReceived(_) => Some(TransportError {
            kind: TransportErrorKind::Lasting,
            reason: format!("{host} and attache agree on no TLS connection: {error}"),
        }),
        _ => None,
    }
}

fn certificate_words(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "no authority that this machine trusts has signed it. If your company's proxy or your own authority did, set SSL_CERT_FILE \
             to a file with that authority's certificate"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("it has expired, or this machine's clock is wrong ({why})")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("it is not valid yet, or this machine's clock is wrong ({why})")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it was made for another name ({why})")
        }
        other => format!("{other}. SSL_CERT_FILE names a file of the authorities to trust"),
    }
}

/// Matches the C library's words. If the resolver cannot be reached, it says something else, and a retry may
/// help.
fn is_unknown_name(reason: &str) -> bool {
    reason.contains("Name or service not known") || reason.contains("nodename nor servname provided")
}

/// What we say if we could not build a client.
pub(crate) fn no_client(error: &reqwest::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        reason = inner.to_string();
        source = inner.source();
    }
    format!(
        "the certificates of this machine could not be read ({reason}); install the package ca-certificates, or set \
         SSL_CERT_FILE to a file with the authorities to trust"
    )
}
