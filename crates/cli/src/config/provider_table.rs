//! Reads `[providers.NAME]` of the file. A known vendor needs no keys; any other provider needs its dialect and
//! its address.

use std::path::PathBuf;

use attache_models::{BaseUrl, Dialect, VENDORS, Vendor};
use toml_edit::{Item, TableLike};

use super::error::{nearest, shown};
use super::file::{FileReader, found_item};
use super::keys::mismatch;
use super::limits::{MAX_PRICE, MAX_TOKENS};
use super::provider::{NO_VARIABLE_NAME, bad_address, is_variable_name, own_key_variable, vendor_address};
use super::{Config, HttpWire, Provider, ProviderModel, ProviderWire, SettingOrigin, Sourced, StatedPrice};

const SCRIPT: &str = "script";
pub(super) const PROVIDER_KEYS: [&str; 5] = ["dialect", "base_url", "api_key_env", "script", "models"];
pub(super) const MODEL_KEYS: [&str; 7] =
    ["context", "max_output", "images", "audio", "pdf", "reasoning", "price"];
pub(super) const PRICE_KEYS: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

/// The value of `dialect`.
enum StatedDialect {
    Script,
    Wire(Dialect),
}

/// One `[providers.NAME]` table while we read it.
struct ProviderTable<'a> {
    name: &'a str,
    /// `providers.NAME`, for messages.
    path: String,
    entries: &'a dyn TableLike,
    origin: SettingOrigin,
    vendor: Option<&'static Vendor>,
}

impl FileReader<'_> {
    pub(super) fn providers(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let Some(table) = item.as_table_like() else {
            return self.refuse(origin, mismatch("providers", "a table of providers", &found_item(item)));
        };
        for (name, item) in table.iter() {
            let origin = self.origin(table, name);
            let path = format!("providers.{}", shown(name));
            self.providers_named.push(name.to_owned());
            if name.is_empty()
                || name.contains('/')
                || name.starts_with("agent:")
                || name.chars().any(|c| c.is_whitespace() || c.is_control())
            {
                let reason =
                    "must have a name without slashes and blanks, because models are written provider/model";
                self.refuse(origin, format!("`{path}` {reason}"));
                continue;
            }
            match item.as_table_like() {
                Some(entries) => {
                    let vendor = Vendor::find(name);
                    let provider = self.provider(&ProviderTable { name, path, entries, origin, vendor });
                    config.providers.extend(provider);
                }
                None => self.refuse(origin, mismatch(&path, "a table", &found_item(item))),
            }
        }
    }

    fn provider(&mut self, table: &ProviderTable<'_>) -> Option<Provider> {
        self.provider_keys(table);
        let spoken = table.entries.get("dialect").map(|item| self.dialect(table, item));
        let wire = match (spoken, table.vendor) {
            (Some(None), _) => {
                self.stated_values(table);
                None
            }
            (Some(Some(Sourced { value: StatedDialect::Script, origin })), _) => {
                self.script_wire(table, origin)
            }
            (Some(Some(Sourced { value: StatedDialect::Wire(value), origin })), _) => {
                self.http_wire(table, Sourced { value, origin })
            }
            (None, Some(vendor)) => {
                self.http_wire(table, Sourced { value: vendor.dialect, origin: SettingOrigin::Default })
            }
            (None, None) => {
                self.refuse(table.origin.clone(), needs_dialect(table));
                self.stated_values(table);
                None
            }
        };
        let models = match table.entries.get("models") {
            Some(item) => self.models(&table.path, item, self.origin(table.entries, "models")),
            None => Vec::new(),
        };
        Some(Provider {
            name: table.name.to_owned(),
            origin: table.origin.clone(),
            vendor: table.vendor,
            wire: wire?,
            models,
        })
    }

    fn provider_keys(&mut self, table: &ProviderTable<'_>) {
        if table.entries.contains_key("api_key") {
            let (path, name) = (&table.path, shown(table.name));
            let message = format!(
                "`{path}.api_key`: keys do not belong in this file; run `attache auth login {name}`, or write api_key_env = \
                 \"VARIABLE\""
            );
            self.refuse(self.origin(table.entries, "api_key"), message);
        }
        let known: Vec<&str> = PROVIDER_KEYS.into_iter().chain(["api_key"]).collect();
        self.unknown_keys(&table.path, table.entries, &known, &PROVIDER_KEYS);
    }

    fn dialect(&mut self, table: &ProviderTable<'_>, item: &Item) -> Option<Sourced<StatedDialect>> {
        let origin = self.origin(table.entries, "dialect");
        let path = format!("{}.dialect", table.path);
        let names = dialects();
        let Some(text) = item.as_str() else {
            let expected = format!("one of {}", names.join(", "));
            self.refuse(origin, mismatch(&path, &expected, &found_item(item)));
            return None;
        };
        match Dialect::parse(text) {
            Some(dialect) => Some(Sourced { value: StatedDialect::Wire(dialect), origin }),
            None if text == SCRIPT => Some(Sourced { value: StatedDialect::Script, origin }),
            None => {
                let near = nearest(text, &names).map(|near| format!(", did you mean \"{near}\"?"));
                let message = format!(
                    "`{path}` \"{}\" is unknown{} (known: {})",
                    shown(text),
                    near.unwrap_or_default(),
                    names.join(", ")
                );
                self.refuse(origin, message);
                None
            }
        }
    }

    /// Without a dialect we do not know which keys are valid. Check the stated ones anyway, so that the user
    /// sees all errors at once.
    fn stated_values(&mut self, table: &ProviderTable<'_>) {
        if let Some(item) = table.entries.get("base_url") {
            self.base_url(table, item);
        }
        if let Some(item) = table.entries.get("api_key_env") {
            self.key_variable(table, item);
        }
        if let Some(item) = table.entries.get("script") {
            self.script(table, item);
        }
    }

    fn script_wire(&mut self, table: &ProviderTable<'_>, dialect: SettingOrigin) -> Option<ProviderWire> {
        for key in ["base_url", "api_key_env"] {
            if table.entries.contains_key(key) {
                let message = format!("`{}.{key}` has no use: a script is read from its file", table.path);
                self.refuse(self.origin(table.entries, key), message);
            }
        }
        let Some(item) = table.entries.get("script") else {
            let needs =
                format!("`{}` needs script = \"FILE\", the transcript its answers come from", table.path);
            self.refuse(table.origin.clone(), needs);
            return None;
        };
        let script = self.script(table, item)?;
        Some(ProviderWire::Script { dialect, script })
    }

    fn script(&mut self, table: &ProviderTable<'_>, item: &Item) -> Option<Sourced<PathBuf>> {
        let origin = self.origin(table.entries, "script");
        match item.as_str().filter(|text| !text.is_empty() && !text.contains('\0')) {
            Some(text) => Some(Sourced { value: self.directory.join(text), origin }),
            None => {
                let expected = "the path of a script as a string";
                self.refuse(origin, mismatch(&format!("{}.script", table.path), expected, &found_item(item)));
                None
            }
        }
    }

    fn http_wire(&mut self, table: &ProviderTable<'_>, dialect: Sourced<Dialect>) -> Option<ProviderWire> {
        if table.entries.contains_key("script") {
            let message = format!("`{}.script` has a use only with dialect = \"script\"", table.path);
            self.refuse(self.origin(table.entries, "script"), message);
        }
        // Read both before either error returns.
        let base_url = self.address(table);
        let key_variables = self.key_variables(table);
        Some(ProviderWire::Http(HttpWire { dialect, base_url: base_url?, key_variables: key_variables? }))
    }

    /// `Some(None)` if the vendor has no common address and the table states none.
    fn address(&mut self, table: &ProviderTable<'_>) -> Option<Option<Sourced<BaseUrl>>> {
        match (table.entries.get("base_url"), table.vendor) {
            (Some(item), _) => self.base_url(table, item).map(Some),
            (None, Some(vendor)) => Some(vendor_address(vendor)),
            (None, None) => {
                let near = did_you_mean(table.name);
                let message = format!(
                    "`{}` needs base_url = \"http://…\", the address of its server{near}",
                    table.path
                );
                self.refuse(table.origin.clone(), message);
                None
            }
        }
    }

    fn key_variables(&mut self, table: &ProviderTable<'_>) -> Option<Sourced<Vec<String>>> {
        let default = |value| Some(Sourced { value, origin: SettingOrigin::Default });
        match (table.entries.get("api_key_env"), table.vendor) {
            (Some(item), _) => self.key_variable(table, item),
            (None, Some(vendor)) => {
                default(vendor.key_variables.iter().map(|name| (*name).to_owned()).collect())
            }
            (None, None) => default(vec![own_key_variable(table.name)]),
        }
    }

    fn base_url(&mut self, table: &ProviderTable<'_>, item: &Item) -> Option<Sourced<BaseUrl>> {
        let origin = self.origin(table.entries, "base_url");
        let path = format!("{}.base_url", table.path);
        let Some(text) = item.as_str() else {
            self.refuse(origin, mismatch(&path, "an address as a string", &found_item(item)));
            return None;
        };
        match BaseUrl::parse(text) {
            Ok(value) => Some(Sourced { value, origin }),
            Err(bad) => {
                self.refuse(origin, format!("`{path}` {}", bad_address(text, &bad)));
                None
            }
        }
    }

    /// A value that is no variable's name may be a key, so do not repeat it.
    fn key_variable(&mut self, table: &ProviderTable<'_>, item: &Item) -> Option<Sourced<Vec<String>>> {
        let origin = self.origin(table.entries, "api_key_env");
        match item.as_str().filter(|text| is_variable_name(text)) {
            Some(text) => Some(Sourced { value: vec![text.to_owned()], origin }),
            None => {
                self.refuse(origin, format!("`{}.api_key_env` {NO_VARIABLE_NAME}", table.path));
                None
            }
        }
    }

    fn models(&mut self, path: &str, item: &Item, origin: SettingOrigin) -> Vec<ProviderModel> {
        let path = format!("{path}.models");
        let Some(table) = item.as_table_like() else {
            self.refuse(origin, mismatch(&path, "a table of models", &found_item(item)));
            return Vec::new();
        };
        let mut models = Vec::new();
        for (name, item) in table.iter() {
            let path = format!("{path}.{}", shown(name));
            match item.as_table_like() {
                Some(entries) if !name.is_empty() => models.push(self.model(name, &path, entries)),
                Some(_) => self.refuse(self.origin(table, name), format!("`{path}` must have a name")),
                None => self.refuse(self.origin(table, name), mismatch(&path, "a table", &found_item(item))),
            }
        }
        models
    }

    fn model(&mut self, name: &str, path: &str, table: &dyn TableLike) -> ProviderModel {
        self.unknown_keys(path, table, &MODEL_KEYS, &MODEL_KEYS);
        let tokens = "a whole number of tokens from 1 to 1000000000";
        let number = |item: &Item| {
            let number = u64::try_from(item.as_integer()?).ok()?;
            (1..=MAX_TOKENS).contains(&number).then_some(number)
        };
        let mut switch = |key: &str| self.entry(path, table, key, "true or false", Item::as_bool);
        let (images, audio) = (switch("images"), switch("audio"));
        let (pdf, reasoning) = (switch("pdf"), switch("reasoning"));
        ProviderModel {
            name: name.to_owned(),
            context: self.entry(path, table, "context", tokens, number),
            max_output: self.entry(path, table, "max_output", tokens, number),
            images,
            audio,
            pdf,
            reasoning,
            price: self.price(path, table),
        }
    }

    fn price(&mut self, path: &str, table: &dyn TableLike) -> Option<Sourced<StatedPrice>> {
        let item = table.get("price")?;
        let origin = self.origin(table, "price");
        let path = format!("{path}.price");
        let Some(entries) = item.as_table_like() else {
            let expected =
                "a table { input, output, cache_read?, cache_write? } in dollars per million tokens";
            self.refuse(origin, mismatch(&path, expected, &found_item(item)));
            return None;
        };
        self.unknown_keys(&path, entries, &PRICE_KEYS, &PRICE_KEYS);
        let dollars = "a number of dollars per million tokens from 0 to 1000000";
        let number = |item: &Item| {
            let number = item.as_float().or_else(|| item.as_integer().map(|whole| whole as f64))?;
            (0.0..=MAX_PRICE).contains(&number).then_some(number)
        };
        let mut cost = |key: &str| self.entry(&path, entries, key, dollars, number).map(|cost| cost.value);
        let (input, output) = (cost("input"), cost("output"));
        let (cache_read, cache_write) = (cost("cache_read"), cost("cache_write"));
        for key in ["input", "output"].into_iter().filter(|key| !entries.contains_key(key)) {
            self.refuse(origin.clone(), format!("`{path}` needs {key}, {dollars}"));
        }
        Some(Sourced {
            value: StatedPrice { input: input?, output: output?, cache_read, cache_write },
            origin,
        })
    }
}

fn dialects() -> Vec<&'static str> {
    Dialect::ALL.into_iter().map(Dialect::as_str).chain([SCRIPT]).collect()
}

/// An unknown name without a dialect is most likely a typing error.
fn needs_dialect(table: &ProviderTable<'_>) -> String {
    let known: Vec<&str> = VENDORS.iter().map(|vendor| vendor.id).collect();
    let missing = match table.entries.contains_key("base_url") {
        true => "dialect",
        false => "dialect and base_url",
    };
    format!(
        "`{}` is not a known provider, so it needs {missing}{} (known providers: {}; dialects: {})",
        table.path,
        did_you_mean(table.name),
        known.join(", "),
        dialects().join(", ")
    )
}

fn did_you_mean(name: &str) -> String {
    Vendor::nearest(name).map(|near| format!("; did you mean `{}`?", near.id)).unwrap_or_default()
}
