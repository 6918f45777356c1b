//! The token endpoint: a code becomes tokens, a refresh token others, and neither is of use any more. Every
//! request names the server that the tokens are for (RFC 8707).

use std::time::Duration;

use attache_core::legible::legible_line;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::StatusCode;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::OAuthError;
use super::challenge::scopes;
use super::record::{IssuedTokens, OAuthClient, TokenAuthentication};
use super::web::{OAuthAnswer, OAuthBody, OAuthWeb, place};
use crate::limits::TOKEN_BYTES;

/// The client that asks a token endpoint, and for which resource.
pub(super) struct TokenClient<'a> {
    pub(super) web: OAuthWeb,
    pub(super) endpoint: &'a Url,
    pub(super) client: &'a OAuthClient,
    /// From a registration, or from the configuration.
    pub(super) secret: Option<&'a str>,
    pub(super) resource: &'a str,
    pub(super) issuer: &'a str,
}

/// The code that the browser brought, with the verifier that proves it is ours.
pub(super) struct CodeGrant<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    pub(super) redirect: &'a str,
    pub(super) scopes: &'a [String],
}

impl TokenClient<'_> {
    pub(super) async fn exchange(&self, grant: CodeGrant<'_>) -> Result<IssuedTokens, OAuthError> {
        let CodeGrant { code, verifier, redirect, scopes } = grant;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", verifier),
            ("resource", self.resource),
        ];
        let answer = self.ask(self.endpoint, &form).await?;
        self.tokens(&answer, &[code, verifier], scopes, None)
    }

    /// The refresh token stays what it was unless another one comes.
    pub(super) async fn refresh(
        &self,
        tokens: &IssuedTokens,
        refresh: &str,
    ) -> Result<IssuedTokens, OAuthError> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh), ("resource", self.resource)];
        let answer = self.ask(self.endpoint, &form).await?;
        self.tokens(&answer, &[refresh, &tokens.access], &tokens.scopes, Some(refresh))
    }

    /// RFC 7009: also a token that is not known any more is revoked.
    pub(super) async fn revoke(&self, at: &Url, token: &str, kind: &str) -> Result<(), OAuthError> {
        let answer = self.ask(at, &[("token", token), ("token_type_hint", kind)]).await?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(refusal(&answer, at, &[token])),
        }
    }

    async fn ask(&self, at: &Url, form: &[(&str, &str)]) -> Result<OAuthAnswer, OAuthError> {
        self.web.post(at, self.body(form)?).await
    }

    fn body(&self, form: &[(&str, &str)]) -> Result<OAuthBody, OAuthError> {
        let mut text = Serializer::new(String::new());
        text.extend_pairs(form);
        let (id, secret) = (&self.client.id, self.secret.unwrap_or_default());
        let mut authorization = None;
        match self.client.authentication {
            TokenAuthentication::None => {
                text.append_pair("client_id", id);
            }
            TokenAuthentication::ClientSecretPost => {
                text.append_pair("client_id", id).append_pair("client_secret", secret);
            }
            TokenAuthentication::ClientSecretBasic => {
                let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let both = STANDARD.encode(format!("{}:{}", part(id), part(secret)));
                let header = HeaderValue::from_str(&format!("Basic {both}"));
                let mut header =
                    header.map_err(|_| OAuthError::Failed("the client_id can't be sent".to_owned()))?;
                header.set_sensitive(true);
                authorization = Some(header);
            }
        }
        let kind = Some("application/x-www-form-urlencoded");
        Ok(OAuthBody { kind, text: text.finish(), authorization })
    }

    fn tokens(
        &self,
        answer: &OAuthAnswer,
        sent: &[&str],
        asked: &[String],
        before: Option<&str>,
    ) -> Result<IssuedTokens, OAuthError> {
        #[derive(Deserialize)]
        struct Issued {
            access_token: String,
            token_type: String,
            #[serde(default)]
            expires_in: Option<Value>,
            #[serde(default)]
            refresh_token: Option<String>,
            #[serde(default)]
            scope: Option<String>,
        }
        let secrets: Vec<&str> = sent.iter().copied().chain(self.secret).collect();
        let bad = |problem: &str| OAuthError::BadAnswer {
            place: place(self.endpoint),
            problem: problem.to_owned(),
        };
        if !answer.status.is_success() {
            return Err(refusal(answer, self.endpoint, &secrets));
        }
        // Some say in a good answer that it is a bad one.
        let Some(issued) = answer.json::<Issued>() else {
            return Err(denial(answer, &secrets).unwrap_or_else(|| bad("without a token")));
        };
        if !issued.token_type.eq_ignore_ascii_case("bearer") {
            return Err(bad("with a token of a kind that is not understood"));
        }
        let tokens = [Some(&issued.access_token), issued.refresh_token.as_ref()];
        let is_usable =
            |token: &String| token.len() <= TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_graphic());
        if issued.access_token.is_empty() || !tokens.into_iter().flatten().all(is_usable) {
            return Err(bad("with a token that can't be sent"));
        }
        if let Some(other) = other_audience(&issued.access_token, self.resource, self.issuer) {
            return Err(OAuthError::OtherAudience(other));
        }
        let given = issued.scope.as_deref().map_or_else(|| asked.to_vec(), scopes);
        let refresh = issued.refresh_token.filter(|token| !token.is_empty());
        let refresh = refresh.or(before.map(str::to_owned));
        let life = issued.expires_in.as_ref().and_then(seconds);
        Ok(IssuedTokens::new(issued.access_token, refresh, life, given))
    }
}

/// A number, as some write it in quotation marks.
fn seconds(value: &Value) -> Option<Duration> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let whole = || value.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    number.or_else(|| whole().map(|seconds| seconds as u64)).map(Duration::from_secs)
}

/// Why an endpoint refused, without what it was sent: it might repeat that.
pub(super) fn refusal(answer: &OAuthAnswer, at: &Url, secrets: &[&str]) -> OAuthError {
    let status = answer.status;
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS || !status.is_client_error();
    let denied = if is_busy { None } else { denial(answer, secrets) };
    denied.unwrap_or_else(|| OAuthError::BadAnswer { place: place(at), problem: status.to_string() })
}

fn denial(answer: &OAuthAnswer, secrets: &[&str]) -> Option<OAuthError> {
    #[derive(Deserialize)]
    struct OAuthDenial {
        error: String,
        #[serde(default)]
        error_description: Option<String>,
    }
    let refusal: OAuthDenial = answer.json()?;
    Some(said(&refusal.error, refusal.error_description.as_deref(), secrets))
}

/// Words of an authorization server, made readable for people.
pub(super) fn said(code: &str, description: Option<&str>, secrets: &[&str]) -> OAuthError {
    let plain = |text: &str, most: usize| {
        let hidden = |text: String, secret: &&str| match secret.len() {
            // Too short to be one, and part of any text.
            0..8 => text,
            _ => text.replace(*secret, "[key]"),
        };
        let text = secrets.iter().fold(text.to_owned(), hidden);
        legible_line(text.trim()).chars().take(most).collect::<String>()
    };
    let description = description.map(|text| plain(text, 200)).filter(|text| !text.is_empty());
    let description = description.map(|text| format!(": {text}")).unwrap_or_default();
    OAuthError::Denied { code: plain(code, 64), description }
}

/// For whom a token is, where it says so itself and that is another place than the server's: it must not get
/// there. Names that are no addresses, and the issuer's own, say nothing about that.
fn other_audience(token: &str, resource: &str, issuer: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        aud: Value,
    }
    let [_, claims, _] = token.split('.').collect::<Vec<_>>()[..] else { return None };
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    let audience = serde_json::from_slice::<Claims>(&claims).ok()?.aud;
    let audience: Vec<&str> = match &audience {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let address = |text: &str| Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let own: Vec<Url> = [resource, issuer].into_iter().filter_map(address).collect();
    let is_other =
        |name: &&str| address(name).is_some_and(|url| own.iter().all(|own| own.origin() != url.origin()));
    let all_are = !audience.is_empty() && audience.iter().all(is_other);
    all_are.then(|| legible_line(&audience.join(", ").chars().take(200).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn audience(aud: Value) -> Option<String> {
        let claims = URL_SAFE_NO_PAD.encode(json!({ "aud": aud }).to_string());
        other_audience(&format!("e30.{claims}.sig"), "https://x.test/mcp", "https://a.test")
    }

    #[test]
    fn a_token_that_names_another_place_is_not_for_the_server() {
        for fine in [
            json!("https://x.test/mcp"),
            json!("https://x.test"),
            json!(["https://y.test", "https://x.test/other"]),
            json!("https://a.test/userinfo"),
            json!("account"),
            json!("api://0123"),
            json!([]),
            json!(5),
            json!(null),
        ] {
            assert_eq!(audience(fine.clone()), None, "{fine}");
        }
        assert_eq!(audience(json!("https://y.test/mcp")).unwrap(), "https://y.test/mcp");
        assert_eq!(audience(json!(["http://x.test/mcp"])).unwrap(), "http://x.test/mcp");
        assert_eq!(other_audience("opaque", "https://x.test", "https://a.test"), None);
        assert_eq!(other_audience("a.!!.c", "https://x.test", "https://a.test"), None);
    }

    #[test]
    fn what_a_server_repeats_is_not_shown() {
        let error = said("invalid_grant\u{1b}[2J", Some("no token canary-refresh here"), &["canary-refresh"]);
        let text = error.to_string();
        assert!(text.contains("no token [key] here") && !text.contains('\u{1b}'), "{text}");
        assert!(error.is_final() == text.contains("invalid_grant:"), "{text}");
        assert!(said("invalid_grant", None, &[]).is_final());
        assert!(!said("temporarily_unavailable", None, &[]).is_final());
    }

    #[test]
    fn lives_are_read_however_they_are_written() {
        for value in [json!(60), json!("60"), json!(60.9)] {
            assert_eq!(seconds(&value), Some(Duration::from_secs(60)), "{value}");
        }
        for value in [json!(-1), json!("soon"), json!(null), json!({})] {
            assert_eq!(seconds(&value), None, "{value}");
        }
    }
}
