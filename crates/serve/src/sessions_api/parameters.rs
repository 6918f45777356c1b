//! The query of a request: each parameter once, of its kind, and none that means nothing.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use attache_core::legible::legible_line;
use axum::http::Uri;

use super::ApiError;

#[derive(Debug)]
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    pub(super) fn of(uri: &Uri) -> Result<Self, ApiError> {
        let mut all = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if all.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(invalid(&name, "is given twice"));
            }
        }
        Ok(Self(all))
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    pub(super) fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<usize>,
        usual: usize,
    ) -> Result<usize, ApiError> {
        let Some(text) = self.0.remove(name) else { return Ok(usual) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| invalid(name, &format!("must be {} to {}", range.start(), range.end())))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool, ApiError> {
        match self.0.remove(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid(name, "must be true or false")),
        }
    }

    /// A place that an earlier answer named.
    pub(super) fn cursor<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.0.remove(name) else { return Ok(None) };
        match read(&text) {
            Some(place) => Ok(Some(place)),
            None => Err(invalid(name, "is no cursor of this server: leave it out to begin anew")),
        }
    }

    /// Whatever is left over was meant to do something.
    pub(super) fn end(self) -> Result<(), ApiError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(invalid(name, "is no parameter of this address")),
        }
    }
}

pub(super) fn invalid(name: &str, why: &str) -> ApiError {
    ApiError::Invalid(format!("`{}` {why}", legible_line(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(query: &str) -> Result<Parameters, ApiError> {
        Parameters::of(&format!("/x?{query}").parse().unwrap())
    }

    fn reason(error: ApiError) -> String {
        match error {
            ApiError::Invalid(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_can_not_be_meant_is_named() {
        let mut all = parameters("limit=5&archived=true&q=a%20b&x=1").unwrap();
        assert_eq!(all.number("limit", 1..=9, 3).unwrap(), 5);
        assert!(all.flag("archived").unwrap() && !all.flag("none").unwrap());
        assert_eq!(all.text("q").as_deref(), Some("a b"));
        assert_eq!(reason(all.end().unwrap_err()), "`x` is no parameter of this address");
        assert_eq!(reason(parameters("a=1&a=2").unwrap_err()), "`a` is given twice");
        let number = |query: &str| parameters(query).unwrap().number("n", 1..=9, 3);
        assert_eq!(number("").unwrap(), 3);
        for wrong in ["n=0", "n=10", "n=", "n=x", "n=-1"] {
            assert_eq!(reason(number(wrong).unwrap_err()), "`n` must be 1 to 9", "{wrong}");
        }
        assert!(parameters("f=yes").unwrap().flag("f").is_err());
    }
}
