//! Wrong configurations and their exact messages, precedence, and whether the printed configuration can be read
//! back.

use std::path::{Path, PathBuf};

use attache_core::hooks::{EVENT_NAMES, HookOwner};
use attache_core::watchdog::Rule;
use attache_models::VENDORS;
use clap::Parser;
use proptest::prelude::*;

use super::*;
use crate::print_config;
use crate::setup::Sources;

/// A user's directory with a config.toml.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn with(config: &str) -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::write(place.path("config.toml"), config).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn dirs(&self) -> Dirs {
        let home = self.directory.path().to_str().unwrap();
        Dirs::from_environment(&ProcessEnvironment::from_pairs(&[("ATTACHE_HOME", home)])).unwrap()
    }

    fn load_with(&self, environment: &[(&str, &str)], options: &[&str]) -> Result<Config, ConfigErrors> {
        let args = Args::parse_from(["attache", "acp"].iter().chain(options));
        Config::load(&args, &ProcessEnvironment::from_pairs(environment), &self.dirs())
    }

    /// With a store that does not depend on the test's directory.
    fn sources(&self, environment: &[(&str, &str)], options: &[&str]) -> Sources {
        let config = self.load_with(environment, options).unwrap();
        Sources::new(config, self.dirs(), &ProcessEnvironment::from_pairs(environment))
    }

    fn load(&self) -> Result<Config, ConfigErrors> {
        self.load_with(&[], &[])
    }

    /// The messages, with the directory's path as `~`.
    fn errors_with(&self, environment: &[(&str, &str)], options: &[&str]) -> String {
        self.shown(&self.load_with(environment, options).unwrap_err().to_string())
    }

    fn shown(&self, text: &str) -> String {
        text.replace(self.directory.path().to_str().unwrap(), "~")
    }
}

const SCRIPTED: &str = "[providers.demo]\ndialect = \"script\"\nscript = \"demo.script\"\n";

#[test]
fn a_bad_configuration_is_answered_with_file_line_and_the_way_out() {
    let table: &[(&str, &str)] = &[
        (
            "[providers.openai]\nmodel = \"openai/gpt\"",
            "~/config.toml:2: `providers.openai.model` is in the wrong place: `model` belongs at the top of the file, above the first [section]",
        ),
        (
            "[provider.mine]\ndialect = \"script\"",
            "~/config.toml:1: unknown key `provider`, did you mean `providers`? (valid here: TOP)",
        ),
        ("snapshots = yes", "~/config.toml:1: not valid TOML: write true or false instead of yes"),
        (
            "[[permissions]]\npermission = \"shell\"\naction = \"deny\"",
            "~/config.toml:2: `permissions[1].permission` \"shell\" is unknown, did you mean \"bash\"? (known: TOOLS, mcp:SERVER:TOOL)",
        ),
        (
            "max_steps = 5",
            "~/config.toml:1: `max_steps` is in the wrong place: `max_steps` belongs in [limits]",
        ),
        (
            "base_url = \"http://localhost\"",
            "~/config.toml:1: `base_url` is in the wrong place: `base_url` belongs in [web_search] or in [providers.NAME]",
        ),
        (
            "[limits]\naction = \"deny\"",
            "~/config.toml:2: `limits.action` is in the wrong place: `action` belongs in [[permissions]]",
        ),
        (
            "modle = \"a/b\"",
            "~/config.toml:1: unknown key `modle`, did you mean `model`? (valid here: agent, agents, approval, catalogue, chat_keys, chat_plain, client_fs, durability, hooks, limits, mcp, model, permissions, providers, sandbox, schedule, serve, skills, small_model, snapshots, store, telemetry, thoughts, web_search, webhooks)",
        ),
        (
            "\n\nxyz = 1",
            "~/config.toml:3: unknown key `xyz` (valid here: agent, agents, approval, catalogue, chat_keys, chat_plain, client_fs, durability, hooks, limits, mcp, model, permissions, providers, sandbox, schedule, serve, skills, small_model, snapshots, store, telemetry, thoughts, web_search, webhooks)",
        ),
        (
            "[[permissions]]\npermission = \"bash\"",
            "~/config.toml:2: `permissions[1]` needs action, \"allow\", \"ask\" or \"deny\"",
        ),
        (
            "permissions = 3",
            "~/config.toml:1: `permissions` must be tables [[permissions]] with permission, pattern and action, found the number 3",
        ),
        (
            "[permissions]\nbash = \"ask\"",
            "~/config.toml:1: `permissions` must be tables [[permissions]] with permission, pattern and action, found a table",
        ),
        (
            "[[permissions]]\npermission = \"bahs\"\naction = \"deny\"",
            "~/config.toml:2: `permissions[1].permission` \"bahs\" is unknown, did you mean \"bash\"? (known: TOOLS, mcp:SERVER:TOOL)",
        ),
        (
            "[[permissions]]\npermission = \"bash\"\naction = \"block\"",
            "~/config.toml:3: `permissions[1].action` must be \"allow\", \"ask\" or \"deny\", found the string \"block\"",
        ),
        (
            "[[permissions]]\npermission = \"bash\"\npattern = 7\naction = \"deny\"",
            "~/config.toml:3: `permissions[1].pattern` must be a text; `*` matches anything, found the number 7",
        ),
        (
            "[[permissions]]\npermission = \"todo\"\npattern = \"x\"\naction = \"deny\"",
            "~/config.toml:3: `permissions[1].pattern` must be `*`: a rule about a tool is about all of its calls",
        ),
        (
            "[[permissions]]\npermission = \"read\"\npattern = \"../x\"\naction = \"deny\"",
            "~/config.toml:3: `permissions[1].pattern` can't match: paths are judged without `..`",
        ),
        (
            "[[permissions]]\npermission = \"bash\"\naction = \"deny\"\nmatches = []",
            "~/config.toml:4: unknown key `permissions[1].matches`, did you mean `permissions[1].match`? (valid here: permission, pattern, action, match, not_match)",
        ),
        (
            "[[permissions]]\npermission = \"bash\"\naction = \"deny\"\nmatch = [1]",
            "~/config.toml:4: `permissions[1].match` must be a list of examples as strings, found an array",
        ),
        (
            "[[permissions]]\npermission = \"bash\"\npattern = \"cargo test*\"\naction = \"allow\"\nmatch = [\"cargo test -q\"]\nnot_match = [\"cargo testament\"]",
            "~/config.toml:6: `permissions[1].not_match`: the pattern \"cargo test*\" matches the example \"cargo testament\"",
        ),
        (
            "[[permissions]]\npermission = \"bash\"\naction = \"ask\"\n\n[[permissions]]\npermission = \"read\"\npattern = \"keys/*\"\naction = \"deny\"\nmatch = [\"keys/a\", \"src/keys/b\"]",
            "~/config.toml:9: `permissions[2].match`: the pattern \"keys/*\" does not match the example \"src/keys/b\"",
        ),
        (
            "[limits]\nmax_step = 3",
            "~/config.toml:2: unknown key `limits.max_step`, did you mean `limits.max_steps`? (valid here: max_line_bytes, max_steps, stream_idle_timeout_ms)",
        ),
        (
            "limits.max_steps = \"many\"",
            "~/config.toml:1: `limits.max_steps` must be a whole number from 1 to 100000, found the string \"many\"",
        ),
        (
            "[limits]\n\nmax_steps = 0",
            "~/config.toml:3: `limits.max_steps` must be a whole number from 1 to 100000, found the number 0",
        ),
        (
            "limits = { max_steps = 1.5 }",
            "~/config.toml:1: `limits.max_steps` must be a whole number from 1 to 100000, found the number 1.5",
        ),
        ("limits = 3", "~/config.toml:1: `limits` must be a table, found the number 3"),
        (
            "[limits]\nmax_line_bytes = 10",
            "~/config.toml:2: `limits.max_line_bytes` must be a whole number from 65536 to 1073741824, found the number 10",
        ),
        (
            "[web_search]\nprovider = \"bing\"\nbase_url = \"x\"",
            "~/config.toml:2: `web_search.provider` must be \"brave\", \"tavily\", \"exa\" or \"searxng\", found the string \"bing\"\n\
             ~/config.toml:3: `web_search.base_url`: \"x\" is not an address: it must start with http:// or https://",
        ),
        (
            "[web_search]\nprovider = \"brave\"\napi_key = \"canary\"",
            "~/config.toml:3: unknown key `web_search.api_key`, did you mean `web_search.api_key_env`? (valid here: api_key_env, base_url, provider)",
        ),
        (
            "[web_search]\nprovider = \"brave\"\napi_key_env = \"BSA-canary\"",
            "~/config.toml:3: `web_search.api_key_env`: must be the name of an environment variable that holds the key (letters, digits and _), not the key itself",
        ),
        (
            "[web_search]\nprovider = \"searxng\"",
            "~/config.toml:2: `web_search` needs base_url = \"http://…\", the address of your own server",
        ),
        (
            "[web_search]\nprovider = \"searxng\"\nbase_url = \"http://127.0.0.1:8888\"\napi_key_env = \"X\"",
            "~/config.toml:4: `web_search.api_key_env` has no use: searxng takes no key",
        ),
        (
            "[web_search]\nbase_url = \"http://127.0.0.1:8888\"",
            "~/config.toml:2: `web_search` needs provider = \"brave\", \"tavily\", \"exa\" or \"searxng\"",
        ),
        ("web_search = true", "~/config.toml:1: `web_search` must be a table, found true"),
        (
            "[telemetry]\nendpoint = \"localhost:4318\"\ncontent = \"yes\"\nservice_name = \" \"\nprotocol = \"grpc\"",
            "~/config.toml:2: `telemetry.endpoint`: \"localhost:4318\" must start with http:// or https://, not `localhost:`\n\
             ~/config.toml:3: `telemetry.content` must be true or false, found the string \"yes\"\n\
             ~/config.toml:4: `telemetry.service_name` must be a name as a string, found the string \" \"\n\
             ~/config.toml:5: unknown key `telemetry.protocol` (valid here: content, enabled, endpoint, headers, service_name)",
        ),
        (
            "[telemetry]\nheaders = \"a=b\"",
            "~/config.toml:2: `telemetry.headers` must be a table of header names and values, found the string \"a=b\"",
        ),
        (
            "[telemetry.headers]\nauthorization = \"Bearer canary\"",
            "~/config.toml:1: `telemetry.headers`: `authorization` must name the variable that holds its value, for example \"Bearer ${MY_TOKEN}\"",
        ),
        ("model = 5", "~/config.toml:1: `model` must be a string \"provider/model\", found the number 5"),
        (
            "model = \"gpt\"",
            "~/config.toml:1: `model` must be a string \"provider/model\", found the string \"gpt\"",
        ),
        (
            "model = \"/x\"",
            "~/config.toml:1: `model` must be a string \"provider/model\", found the string \"/x\"",
        ),
        ("[model]\nname = 1", "~/config.toml:1: `model` must be a string \"provider/model\", found a table"),
        ("thoughts = true", "~/config.toml:1: `thoughts` must be \"show\" or \"drop\", found true"),
        (
            "thoughts = \"hide\"",
            "~/config.toml:1: `thoughts` must be \"show\" or \"drop\", found the string \"hide\"",
        ),
        ("snapshots = \"no\"", "~/config.toml:1: `snapshots` must be true or false, found the string \"no\""),
        ("durability = []", "~/config.toml:1: `durability` must be \"normal\" or \"full\", found an array"),
        (
            "durability = 1979-05-27",
            "~/config.toml:1: `durability` must be \"normal\" or \"full\", found the date 1979-05-27",
        ),
        (
            "store = \"postgres://h/d\"",
            "~/config.toml:1: `store`: this version keeps sessions in SQLite only: give a path or sqlite:PATH, not `postgres:`",
        ),
        ("providers = 1", "~/config.toml:1: `providers` must be a table of providers, found the number 1"),
        (
            "[[providers]]\nname = 1",
            "~/config.toml:1: `providers` must be a table of providers, found an array of tables",
        ),
        ("[providers]\na = 1", "~/config.toml:2: `providers.a` must be a table, found the number 1"),
        (
            "[providers.\"a/b\"]\ndialect = \"script\"",
            "~/config.toml:1: `providers.a/b` must have a name without slashes and blanks, because models are written provider/model",
        ),
        (
            "\n[providers.grok]\nscript = \"x\"",
            "~/config.toml:2: `providers.grok` is not a known provider, so it needs dialect and base_url; did you mean `groq`? (known providers: ALL; dialects: anthropic, openai-chat, openai-responses, gemini, script)",
        ),
        (
            "[providers.mine]\nbase_url = \"http://h\"",
            "~/config.toml:1: `providers.mine` is not a known provider, so it needs dialect (known providers: ALL; dialects: anthropic, openai-chat, openai-responses, gemini, script)",
        ),
        (
            "[providers.mine]\ndialect = \"openai-chat\"",
            "~/config.toml:1: `providers.mine` needs base_url = \"http://…\", the address of its server",
        ),
        (
            "[providers.a]\ndialect = \"script\"",
            "~/config.toml:1: `providers.a` needs script = \"FILE\", the transcript its answers come from",
        ),
        (
            "[providers.a]\ndialect = \"scirpt\"",
            "~/config.toml:2: `providers.a.dialect` \"scirpt\" is unknown, did you mean \"script\"? (known: anthropic, openai-chat, openai-responses, gemini, script)",
        ),
        (
            "[providers.openai]\ndialect = \"openai\"",
            "~/config.toml:2: `providers.openai.dialect` \"openai\" is unknown, did you mean \"openai-chat\"? (known: anthropic, openai-chat, openai-responses, gemini, script)",
        ),
        (
            "[providers.a]\ndialect = 1",
            "~/config.toml:2: `providers.a.dialect` must be one of anthropic, openai-chat, openai-responses, gemini, script, found the number 1",
        ),
        (
            "[providers.a]\ndialect = \"script\"\nscript = 1",
            "~/config.toml:3: `providers.a.script` must be the path of a script as a string, found the number 1",
        ),
        (
            "[providers.a]\ndialect = \"script\"\nscript = \"x\"\nbase_url = \"http://h\"\napi_key_env = \"K\"",
            "~/config.toml:4: `providers.a.base_url` has no use: a script is read from its file\n\
             ~/config.toml:5: `providers.a.api_key_env` has no use: a script is read from its file",
        ),
        (
            "[providers.openai]\nscript = \"x\"",
            "~/config.toml:2: `providers.openai.script` has a use only with dialect = \"script\"",
        ),
        (
            "[providers.openai]\nbase_url = \"localhost:8080\"",
            "~/config.toml:2: `providers.openai.base_url` \"localhost:8080\" must start with http:// or https://, not `localhost:`",
        ),
        (
            "[providers.openai]\nbase_url = 8080",
            "~/config.toml:2: `providers.openai.base_url` must be an address as a string, found the number 8080",
        ),
        (
            "[providers.openai]\nbase_url = \"https://me:sk-canary@h\"",
            "~/config.toml:2: `providers.openai.base_url` the address must not hold a user name or a password; keys belong in `attache auth login` or the environment",
        ),
        (
            "[providers.azure]",
            "~/config.toml:1: `providers.azure` needs base_url: Azure OpenAI has no common address; write yours here or into AZURE_BASE_URL",
        ),
        (
            "[providers.openai]\napi_key = \"sk-canary\"",
            "~/config.toml:2: `providers.openai.api_key`: keys do not belong in this file; run `attache auth login openai`, or write api_key_env = \"VARIABLE\"",
        ),
        (
            "[providers.openai]\napi_key_env = \"sk-canary\"",
            "~/config.toml:2: `providers.openai.api_key_env` must be the name of an environment variable that holds the key (letters, digits and _), not the key itself",
        ),
        (
            "[providers.openai]\napi_kye = 1",
            "~/config.toml:2: unknown key `providers.openai.api_kye`, did you mean `providers.openai.api_key_env`? (valid here: dialect, base_url, api_key_env, script, models)",
        ),
        (
            "[providers.openai.models.m]\ncontext = -1\nimages = \"no\"\nmax_ouput = 3\nprice = { input = -1, outptu = 2 }",
            "~/config.toml:2: `providers.openai.models.m.context` must be a whole number of tokens from 1 to 1000000000, found the number -1\n\
             ~/config.toml:3: `providers.openai.models.m.images` must be true or false, found the string \"no\"\n\
             ~/config.toml:4: unknown key `providers.openai.models.m.max_ouput`, did you mean `providers.openai.models.m.max_output`? (valid here: context, max_output, images, audio, pdf, reasoning, price)\n\
             ~/config.toml:5: unknown key `providers.openai.models.m.price.outptu`, did you mean `providers.openai.models.m.price.output`? (valid here: input, output, cache_read, cache_write)\n\
             ~/config.toml:5: `providers.openai.models.m.price.input` must be a number of dollars per million tokens from 0 to 1000000, found the number -1\n\
             ~/config.toml:5: `providers.openai.models.m.price` needs output, a number of dollars per million tokens from 0 to 1000000",
        ),
        (
            "[providers.openai.models.m]\nprice = 3",
            "~/config.toml:2: `providers.openai.models.m.price` must be a table { input, output, cache_read?, cache_write? } in dollars per million tokens, found the number 3",
        ),
        (
            "model = \"antropic/m\"",
            "~/config.toml:1: model `antropic/m` needs a provider `antropic`, which is not known; did you mean `anthropic`? (known: ALL); for another, add [providers.antropic] with dialect and base_url to ~/config.toml",
        ),
        (
            "small_model = \"b/m\"",
            "~/config.toml:1: small_model `b/m` needs a provider `b`, which is not known (known: ALL); for another, add [providers.b] with dialect and base_url to ~/config.toml",
        ),
        (
            "approval = \"never\"",
            "~/config.toml:1: `approval` must be \"ask\", \"edits\" or \"all\", found the string \"never\"",
        ),
        (
            "sandbox = \"on\"",
            "~/config.toml:1: `sandbox` must be \"auto\", \"require\" or \"off\", found the string \"on\"",
        ),
        (
            "limits.stream_idle_timeout_ms = 5",
            "~/config.toml:1: `limits.stream_idle_timeout_ms` must be a whole number from 100 to 3600000, found the number 5",
        ),
        (
            "[catalogue]\nurl = \"models.dev\"",
            "~/config.toml:2: `catalogue.url`: \"models.dev\" is not an address: it must start with http:// or https://",
        ),
        ("model = \"a/b\"\nmodel = \"c/d\"", "~/config.toml:2: not valid TOML: duplicate key"),
    ];
    for (config, message) in table {
        let known: Vec<&str> = VENDORS.iter().map(|vendor| vendor.id).collect();
        let built = attache_tools::builtin_names();
        let has = |name: &&str| ["edit", "network"].contains(name) || built.iter().any(|tool| tool == name);
        let permissions: Vec<&str> = Rule::known_permissions().filter(has).collect();
        let message = message.replace("ALL", &known.join(", ")).replace("TOOLS", &permissions.join(", "));
        let message = message.replace("TOP", &super::file::valid_keys("").join(", "));
        assert_eq!(Place::with(config).errors_with(&[], &[]), message, "{config}");
    }
}

#[test]
fn everything_wrong_is_told_at_once_in_the_order_of_the_file() {
    let place = Place::with(
        "small_model = \"no/x\"\n[limits]\nmax_steps = 0\nmax_lines = 1\n[providers.demo]\ndialect = \"gemni\"\n",
    );
    let errors = place.load_with(
        &[("ATTACHE_THOUGHTS", "x"), ("ATTACHE_MODLE", "x")],
        &["--model", "demo", "--store", "x:y"],
    );
    let places: Vec<String> =
        errors.unwrap_err().0.iter().map(|error| place.shown(&error.origin.to_string())).collect();
    assert_eq!(
        places,
        [
            "~/config.toml:1",
            "~/config.toml:3",
            "~/config.toml:4",
            "~/config.toml:6",
            "environment ATTACHE_MODLE",
            "environment ATTACHE_THOUGHTS",
            "option --model",
        ],
        "a scheme of one letter is a path"
    );
}

/// Every line of the first tables is wrong, except their headers.
#[test]
fn every_mistake_of_one_table_is_told() {
    let wrong_everywhere = [
        "[providers.x]\ndialect = \"openia\"\nbase_url = \"x\"\napi_key_env = \"sk-1\"\nscript = 3\nmodels = 4\n",
        "[providers.openai]\nbase_url = \"x\"\napi_key_env = \"sk-1\"\napi_key = \"sk-1\"\nbase = 1\n",
        "[providers.x]\nbase_url = \"x\"\napi_key_env = \"sk-1\"\n",
        "[providers.x]\ndialect = 1\nbase_url = 2\napi_key_env = 3\n",
        "[[permissions]]\npermission = 1\npattern = 2\naction = 3\nmatch = 4\nnot_match = 5\n",
        "[web_search]\nprovider = 1\nbase_url = 2\napi_key_env = 3\nextra = 4\n",
    ];
    for config in wrong_everywhere {
        let errors = Place::with(config).load().unwrap_err().0;
        let lines: std::collections::BTreeSet<usize> = errors.iter().map(ConfigError::line).collect();
        assert!((2..=config.lines().count()).all(|line| lines.contains(&line)), "{config}{errors:#?}");
    }
    let rule = "[[permissions]]\npermission = \"bash\"\npattern = \"ls *\"\naction = \"no\"\n\
                match = [\"cat\", \"rm\"]\nnot_match = [\"ls -l\"]\n";
    assert_eq!(Place::with(rule).load().unwrap_err().0.len(), 4);
    let search = "[web_search]\nprovider = \"searxng\"\napi_key_env = \"sk-1\"\n";
    let told = Place::with(search).errors_with(&[], &[]);
    assert!(told.contains("needs base_url") && told.contains("`web_search.api_key_env`"), "{told}");
    let unaddressed = "[providers.x]\ndialect = \"openai-chat\"\napi_key_env = \"sk-1\"\n";
    let told = Place::with(unaddressed).errors_with(&[], &[]);
    assert!(told.contains("needs base_url") && told.contains("x.api_key_env`"), "{told}");
}

#[test]
fn variables_and_options_are_named_in_their_errors() {
    let place = Place::with("");
    assert_eq!(
        place.errors_with(&[("ATTACHE_LIMITS_MAX_STEPS", "1e3")], &[]),
        "environment ATTACHE_LIMITS_MAX_STEPS: `limits.max_steps` must be a whole number from 1 to 100000, found \"1e3\""
    );
    assert_eq!(
        place.errors_with(&[("ATTACHE_MAX_STEPS", "3")], &[]),
        "environment ATTACHE_MAX_STEPS: unknown variable (valid: ATTACHE_MODEL, ATTACHE_SMALL_MODEL, \
         ATTACHE_AGENT, ATTACHE_APPROVAL, ATTACHE_SANDBOX, ATTACHE_STORE, ATTACHE_THOUGHTS, ATTACHE_CLIENT_FS, ATTACHE_CHAT_KEYS, ATTACHE_CHAT_PLAIN, ATTACHE_DURABILITY, ATTACHE_SNAPSHOTS, ATTACHE_LIMITS_MAX_STEPS, \
         ATTACHE_LIMITS_MAX_LINE_BYTES, ATTACHE_LIMITS_STREAM_IDLE_TIMEOUT_MS, ATTACHE_CATALOGUE_URL, ATTACHE_SKILLS_PATHS, ATTACHE_TELEMETRY_ENABLED, ATTACHE_TELEMETRY_ENDPOINT, ATTACHE_TELEMETRY_CONTENT, ATTACHE_TELEMETRY_SERVICE_NAME, ATTACHE_TELEMETRY_HEADERS, ATTACHE_WEB_SEARCH_PROVIDER, ATTACHE_WEB_SEARCH_BASE_URL, ATTACHE_WEB_SEARCH_API_KEY_ENV, ATTACHE_SERVE_WORKSPACES, ATTACHE_SERVE_HOSTS, ATTACHE_SERVE_ORIGINS, ATTACHE_SERVE_DRAIN_SECONDS, ATTACHE_SERVE_IDLE_SECONDS, ATTACHE_SERVE_ACCESS_LOG, ATTACHE_SERVE_PROXIES, ATTACHE_SERVE_PER_TOKEN_CONNECTIONS, ATTACHE_SERVE_PER_TOKEN_PROMPTS_PER_MINUTE, ATTACHE_SERVE_PER_TOKEN_BYTES_PER_MINUTE, ATTACHE_SERVE_PER_ADDRESS_CONNECTIONS, ATTACHE_SERVE_PER_ADDRESS_PROMPTS_PER_MINUTE, ATTACHE_SERVE_PER_ADDRESS_BYTES_PER_MINUTE, ATTACHE_HOME, ATTACHE_LOG, ATTACHE_TOKEN)"
    );
    assert!(place.errors_with(&[("ATTACHE_MODLE", "3")], &[]).contains("did you mean ATTACHE_MODEL?"));
    assert_eq!(
        place.errors_with(&[], &["--store", "mysql://h"]),
        "option --store: `store`: this version keeps sessions in SQLite only: give a path or sqlite:PATH, not `mysql:`"
    );
    let error = Place::with(SCRIPTED).errors_with(&[], &["--model", "dem/m"]);
    let words = "option --model: model `dem/m` needs a provider `dem`, which is not known; did you mean `demo`? (known: anthropic, ";
    assert!(error.starts_with(words) && error.contains(", demo); for another, add"), "{error}");
    assert_eq!(
        place.errors_with(&[("OPENAI_BASE_URL", "h:1")], &[]),
        "environment OPENAI_BASE_URL: \"h:1\" must start with http:// or https://, not `h:`"
    );
    for level in ["auto", "require", "off"] {
        assert_eq!(place.load_with(&[], &["--sandbox", level]).unwrap().sandbox.value.as_str(), level);
    }
}

#[test]
fn a_provider_with_errors_does_not_make_its_model_wrong_too() {
    let place = Place::with("model = \"demo/x\"\n[providers.demo]\ndialect = \"script\"\n");
    assert_eq!(place.load().unwrap_err().0.len(), 1);
}

#[test]
fn no_configuration_at_all_is_fine_and_has_no_model() {
    let place = Place { directory: tempfile::tempdir().unwrap() };
    let config = place.load().unwrap();
    assert_eq!(config.model, None);
    assert_eq!(config.store.value, place.path("sessions.db"));
    assert_eq!(config.limits.max_steps, Sourced { value: 100, origin: SettingOrigin::Default });
    assert!(config.providers.iter().all(|provider| !provider.is_stated()));
    assert_eq!(config.providers.len(), VENDORS.len());
}

#[test]
fn a_named_file_must_be_there_and_readable() {
    let place = Place::with("");
    let missing = place.path("other.toml");
    let error = |path: &Path| place.errors_with(&[], &["--config", path.to_str().unwrap()]);
    assert_eq!(error(&missing), "~/other.toml: there is no such file");
    assert!(error(place.directory.path()).starts_with("~: can't be read: "));
    assert_eq!(error(Path::new("/dev/zero")), "/dev/zero: larger than 1 MiB: not the right file?");
    std::fs::write(place.path("bytes.toml"), b"# one\n# \xff\n").unwrap();
    assert_eq!(error(&place.path("bytes.toml")), "~/bytes.toml: not valid UTF-8 in line 2");
}

#[test]
fn the_documented_example_is_valid_and_names_every_variable_and_key() {
    let page = include_str!("../../../../docs/configuration.md");
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = Place::with(example).load().unwrap();
    let stated = config.providers.iter().filter(|provider| provider.is_stated());
    assert_eq!(
        stated.map(|provider| provider.name.as_str()).collect::<Vec<_>>(),
        ["anthropic", "local", "hello"]
    );
    for key in KEYS {
        let name = key.path.rsplit('.').next().unwrap();
        assert!(example.lines().any(|line| line.starts_with(&format!("{name} = "))), "{name}");
    }
}

#[test]
fn later_sources_win_and_each_value_remembers_its_own() {
    let place =
        Place::with(&format!("model = \"demo/file\"\nthoughts = \"drop\"\nlimits.max_steps = 7\n{SCRIPTED}"));
    let environment =
        [("ATTACHE_MODEL", "demo/env"), ("ATTACHE_LIMITS_MAX_STEPS", "8"), ("ATTACHE_STORE", "")];
    let config = place.load_with(&environment, &["--model", "demo/option"]).unwrap();
    let model = config.model.unwrap();
    assert_eq!(
        (model.value.model_id.as_str(), model.origin.to_string()),
        ("option", "option --model".to_owned())
    );
    assert_eq!(config.limits.max_steps.value, 8);
    assert_eq!(config.limits.max_steps.origin.to_string(), "environment ATTACHE_LIMITS_MAX_STEPS");
    assert_eq!(
        (config.thoughts.value, place.shown(&config.thoughts.origin.to_string())),
        (Thoughts::Drop, "~/config.toml:2".into())
    );
    assert_eq!(config.store.origin, SettingOrigin::Default);
    let config = place.load_with(&environment, &[]).unwrap();
    assert_eq!(config.model.unwrap().value.model_id, "env");
}

#[test]
fn a_model_name_may_hold_slashes_and_need_not_be_known() {
    let config = Place::with(&format!("model = \"demo/a/b:c\"\n{SCRIPTED}")).load().unwrap();
    let model = config.model.unwrap().value;
    assert_eq!((model.provider_id.as_str(), model.model_id.as_str()), ("demo", "a/b:c"));
}

#[test]
fn a_known_vendor_needs_nothing_and_takes_everything() {
    let place = Place::with(
        "[providers.openai]\n[providers.anthropic]\nbase_url = \"https://gate.example/v1\"\napi_key_env = \"GATE_KEY\"\n\
         dialect = \"openai-chat\"\n[providers.own]\ndialect = \"gemini\"\nbase_url = \"http://127.0.0.1:1\"",
    );
    let config =
        place.load_with(&[("OPENAI_BASE_URL", "http://h/v1"), ("OWN_BASE_URL", "http://no/")], &[]).unwrap();
    let wire = |name: &str| match &config.provider(name).unwrap().wire {
        ProviderWire::Http(wire) => {
            let base_url = wire.base_url.as_ref().unwrap();
            let (url, origin) =
                (base_url.value.as_str().to_owned(), place.shown(&base_url.origin.to_string()));
            (wire.dialect.value.as_str(), url, origin, wire.key_variables.value.join(" "))
        }
        ProviderWire::Script { .. } => panic!("a script"),
    };
    assert_eq!(
        wire("openai"),
        (
            "openai-responses",
            "http://h/v1".into(),
            "environment OPENAI_BASE_URL".into(),
            "OPENAI_API_KEY".into()
        )
    );
    assert_eq!(
        wire("anthropic"),
        ("openai-chat", "https://gate.example/v1".into(), "~/config.toml:3".into(), "GATE_KEY".into())
    );
    assert_eq!(
        wire("own"),
        ("gemini", "http://127.0.0.1:1/".into(), "~/config.toml:8".into(), "OWN_API_KEY".into())
    );
    assert_eq!(
        wire("gemini"),
        (
            "gemini",
            "https://generativelanguage.googleapis.com/".into(),
            "default".into(),
            "GEMINI_API_KEY GOOGLE_API_KEY".into()
        )
    );
    let order: Vec<&str> = config.providers.iter().take(4).map(|provider| provider.name.as_str()).collect();
    assert_eq!(order, ["openai", "anthropic", "own", "gemini"], "those of the file first, then the vendors");
}

#[test]
fn a_store_is_a_path_or_a_sqlite_address() {
    let store = |text: &str| store_path::parse(text, Some(Path::new("/base")));
    for (text, path) in [
        ("x.db", "/base/x.db"),
        ("/abs/x.db", "/abs/x.db"),
        ("sqlite:x.db", "/base/x.db"),
        ("sqlite:/abs/x.db", "/abs/x.db"),
        ("sqlite:///abs/x.db", "/abs/x.db"),
        ("sqlite://x.db", "/base/x.db"),
        ("./a:b", "/base/a:b"),
        ("what?.db", "/base/what?.db"),
    ] {
        assert_eq!(store(text), Ok(PathBuf::from(path)), "{text}");
    }
    for (text, message) in [
        ("", "the path is empty"),
        ("sqlite:", "the path is empty"),
        ("sqlite://", "the path is empty"),
        (":memory:", "a database in memory would lose every session; give a path"),
        ("sqlite::memory:", "a database in memory would lose every session; give a path"),
        ("sqlite:x?mode=ro", "parameters (`?`) of a sqlite: address are not supported"),
        (
            "postgres://h/d",
            "this version keeps sessions in SQLite only: give a path or sqlite:PATH, not `postgres:`",
        ),
        ("file:x", "this version keeps sessions in SQLite only: give a path or sqlite:PATH, not `file:`"),
    ] {
        assert_eq!(store(text), Err(message.to_owned()), "{text}");
    }
}

/// The values without their origins.
fn values(place: &Place) -> String {
    let printed = print_config::text(&place.sources(&[], &[]), Path::new("/"));
    let lines = printed.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split("  # ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_printed_configuration_shows_values_and_origins_and_no_key() {
    let place = Place::with(&format!(
        "{SCRIPTED}models.\"a b\".context = 5\nmodels.\"a b\".images = false\n\
         [providers.openai.models.m]\nprice = {{ input = 1.25, output = 10 }}"
    ));
    let variables =
        [("ATTACHE_DURABILITY", "full"), ("OPENAI_API_KEY", "sk-canary"), ("XAI_API_KEY", "sk-canary")];
    let printed =
        place.shown(&print_config::text(&place.sources(&variables, &["--store", "/s.db"]), Path::new("/")));
    assert_eq!(
        printed,
        "# configuration file: ~/config.toml\n\
         model = \"demo/default\"  # default\n\
         # small_model = \"provider/model\"  # not set\n\
         agent = \"build\"  # default\n\
         approval = \"ask\"  # default\n\
         sandbox = \"auto\"  # default\n\
         store = \"/s.db\"  # option --store\n\
         thoughts = \"show\"  # default\n\
         client_fs = \"auto\"  # default\n\
         chat_keys = \"emacs\"  # default\n\
         chat_plain = false  # default\n\
         durability = \"full\"  # environment ATTACHE_DURABILITY\n\
         snapshots = true  # default\n\
         \n[limits]\n\
         stream_idle_timeout_ms = 300000  # default\n\
         max_steps = 100  # default\n\
         max_line_bytes = 33554432  # default\n\
         \n[catalogue]\n\
         url = \"https://models.dev/api.json\"  # default\n\
         \n[providers.demo]\n\
         # key: none needed\n\
         dialect = \"script\"  # ~/config.toml:2\n\
         script = \"~/demo.script\"  # ~/config.toml:3\n\
         \n[providers.demo.models.\"a b\"]\n\
         context = 5  # ~/config.toml:4\n\
         images = false  # ~/config.toml:5\n\
         \n[providers.openai]\n\
         # key: from OPENAI_API_KEY\n\
         dialect = \"openai-responses\"  # default\n\
         base_url = \"https://api.openai.com/v1\"  # default\n\
         \n[providers.openai.models.m]\n\
         price = { input = 1.25, output = 10.0 }  # ~/config.toml:7\n\
         \n[providers.xai]\n\
         # key: from XAI_API_KEY\n\
         dialect = \"openai-responses\"  # default\n\
         base_url = \"https://api.x.ai/v1\"  # default\n"
    );
}

#[test]
fn the_settings_of_a_server_are_checked_and_printed_as_they_were_written() {
    for (line, expected) in [
        ("workspaces = \"/w\"", "`serve.workspaces` must be an array of paths"),
        ("workspaces = []", "name at least one directory"),
        ("hosts = [\"https://a.example\"]", "is no host name"),
        ("hosts = [7]", "must be an array of host names"),
        ("origins = [\"a.example\"]", "is no origin"),
        ("origins = [\"https://a.example/path\"]", "is no origin"),
        ("drain_seconds = 3601", "a whole number from 0 to 3600"),
        ("drain = 30", "did you mean `serve.drain_seconds`?"),
    ] {
        let place = Place::with(&format!("[serve]\n{line}\n"));
        let told = place.errors_with(&[], &[]);
        assert!(told.starts_with("~/config.toml:2: ") && told.contains(expected), "{line}: {told}");
    }
    let place = Place::with(
        "[serve]\nworkspaces = [\"here\", \"/w\"]\nhosts = [\"a.example:7\"]\norigins = [\"https://b.example\"]\n",
    );
    let printed = place.shown(&print_config::text(&place.sources(&[], &[]), Path::new("/")));
    for line in [
        "[serve]",
        "workspaces = [\"~/here\", \"/w\"]  # ~/config.toml:2",
        "hosts = [\"a.example:7\"]  # ~/config.toml:3",
        "origins = [\"https://b.example\"]  # ~/config.toml:4",
    ] {
        assert!(printed.lines().any(|found| found == line), "{line}: {printed}");
    }
    assert!(printed.contains("drain_seconds = 30"), "{printed}");
}

#[test]
fn rules_are_read_with_their_examples_and_printed_as_they_were_written() {
    let written = "[[permissions]]\npermission = \"bash\"\npattern = \"cargo test *\"\naction = \"allow\"\n\
                   match = [\"cargo test\", \"cargo test -q\"]\nnot_match = [\"cargo testament\"]\n\
                   \n[[permissions]]\npermission = \"web_search\"\naction = \"deny\"\n\
                   \n[[permissions]]\npermission = \"edit\"\npattern = \"/etc/\"\naction = \"deny\"\nmatch = [\"/etc/hosts\"]\n\
                   not_match = [\"etc/hosts\"]\n";
    let place = Place::with(written);
    let config = place.load().unwrap();
    let rules: Vec<String> =
        config.rules.iter().map(|rule| format!("{} {}", rule.action.value.as_str(), rule.rule())).collect();
    assert_eq!(rules, ["allow bash cargo test *", "deny web_search *", "deny edit /etc/"]);
    let printed = place.shown(&print_config::text(&place.sources(&[], &[]), Path::new("/")));
    assert!(
        printed.contains(
            "\n[[permissions]]\n\
             permission = \"bash\"  # ~/config.toml:2\n\
             pattern = \"cargo test *\"  # ~/config.toml:3\n\
             action = \"allow\"  # ~/config.toml:4\n\
             match = [\"cargo test\", \"cargo test -q\"]  # ~/config.toml:5\n\
             not_match = [\"cargo testament\"]  # ~/config.toml:6\n\
             \n[[permissions]]\n\
             permission = \"web_search\"  # ~/config.toml:9\n\
             pattern = \"*\"  # default\n\
             action = \"deny\"  # ~/config.toml:10\n"
        ),
        "{printed}"
    );
    let again = Place::with(&printed).load().unwrap();
    let values = |config: &Config| {
        let examples = |rule: &Option<Sourced<Vec<String>>>| rule.as_ref().map(|rule| rule.value.clone());
        let all = config.rules.iter();
        all.map(|rule| (rule.rule(), examples(&rule.matching), examples(&rule.not_matching)))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&again), values(&config));
}

#[test]
fn hooks_are_read_and_printed_as_they_were_written() {
    let written = "[[hooks]]\nevent = \"before-tool\"\nmatcher = \"bash rm *\"\ncommand = \"check.sh\"\n\
                   \n[[hooks]]\nevent = \"Stop\"\nmatcher = \"*\"\ncommand = [\"notify\", \"a b\"]\ntimeout = 5\n\
                   sandbox = \"off\"\n";
    let place = Place::with(written);
    let config = place.load().unwrap();
    let printed = place.shown(&print_config::text(&place.sources(&[], &[]), place.directory.path()));
    assert!(
        printed.contains(
            "\n[[hooks]]\n\
             event = \"before-tool\"  # ~/config.toml:2\n\
             matcher = \"bash rm *\"  # ~/config.toml:3\n\
             command = \"check.sh\"  # ~/config.toml:4\n\
             timeout = 60  # default\n\
             sandbox = \"on\"  # default\n\
             \n[[hooks]]\n\
             event = \"Stop\"  # ~/config.toml:7\n\
             command = [\"notify\", \"a b\"]  # ~/config.toml:9\n\
             timeout = 5  # ~/config.toml:10\n\
             sandbox = \"off\"  # ~/config.toml:11\n"
        ),
        "{printed}"
    );
    let hooks =
        |config: &Config| config.hooks.iter().map(|hook| hook.hook(HookOwner::User)).collect::<Vec<_>>();
    assert_eq!(hooks(&Place::with(&printed).load().unwrap()), hooks(&config));
}

#[test]
fn the_documented_hooks_are_valid() {
    let page = include_str!("../../../../docs/hooks.md");
    let examples: Vec<_> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 6);
    for example in examples {
        assert_eq!(Place::with(example).load().unwrap().hooks.len(), 1, "{example}");
    }
    for known in EVENT_NAMES {
        assert!(page.contains(&format!("`{}`", known.name)), "{}", known.name);
    }
}

/// Each mistake with its line. We leave out the whole hook and use the rest of the file.
#[test]
fn a_bad_hook_is_left_out_with_its_line_and_what_was_meant() {
    let good = "[[hooks]]\nevent = \"prompt\"\ncommand = \"x\"\n";
    let table: &[(&str, &str)] = &[
        (
            "hooks = 1",
            "~/config.toml:1: `hooks` must be tables [[hooks]] with event and command, found the number 1",
        ),
        ("[[hooks]]\ncommand = \"x\"", "~/config.toml:2: `hooks[1]` needs event, one of prompt, before-tool"),
        ("[[hooks]]\nevent = \"prompt\"", "~/config.toml:2: `hooks[1]` needs command, a text for the shell"),
        (
            "[[hooks]]\nevent = \"PreToolUsed\"\ncommand = \"x\"",
            "~/config.toml:2: `hooks[1].event` \"PreToolUsed\" is unknown, did you mean \"PreToolUse\"? (known: prompt,",
        ),
        (
            "[[hooks]]\nevent = \"prompt\"\ncommand = [1]",
            "~/config.toml:3: `hooks[1].command` must be a text",
        ),
        ("[[hooks]]\nevent = \"prompt\"\ncommand = []", "~/config.toml:3: `hooks[1].command` must be a text"),
        (
            "[[hooks]]\nevent = \"prompt\"\ncommand = \" \"",
            "~/config.toml:3: `hooks[1].command` must be a text",
        ),
        (
            "[[hooks]]\nevent = \"before-tool\"\ncommand = \"x\"\nmatcher = \"mcp__[a-z]+\"",
            "~/config.toml:4: `hooks[1].matcher` \"mcp__[a-z]+\" is no list of names: `[` has no meaning there",
        ),
        (
            "[[hooks]]\nevent = \"Stop\"\ncommand = \"x\"\nmatcher = \"bash\"",
            "~/config.toml:4: `hooks[1].matcher` has nothing to match: there is one kind of turn-end only",
        ),
        (
            "[[hooks]]\nevent = \"compaction\"\ncommand = \"x\"\nmatcher = \"auto x\"",
            "~/config.toml:4: `hooks[1].matcher` is \"manual\" or \"auto\" for a compaction",
        ),
        (
            "[[hooks]]\nevent = \"SubagentStop\"\ncommand = \"x\"\nmatcher = \"explore src/*\"",
            "~/config.toml:4: `hooks[1].matcher` names subagents, as \"explore|reviewer\"",
        ),
    ];
    let told = |text: &str, kept: usize| {
        let place = Place::with(text);
        let config = place.load().unwrap();
        assert_eq!(config.hooks.len(), kept, "{text}");
        let told: Vec<String> = config.bad_hooks.iter().map(ToString::to_string).collect();
        let printed = place.shown(&print_config::text(&place.sources(&[], &[]), Path::new("/")));
        let told = place.shown(&told.join("\n"));
        assert!(printed.contains(&format!("# left out: {}", told.lines().next().unwrap())), "{printed}");
        told
    };
    for (text, message) in table {
        let told = told(
            &format!("{text}\n{}", if text.starts_with("hooks") { "" } else { good }),
            usize::from(!text.starts_with("hooks")),
        );
        assert!(told.starts_with(message), "{told}");
    }
    let misplaced = Place::with("timeout = 5").errors_with(&[], &[]);
    let message = "~/config.toml:1: `timeout` is in the wrong place: `timeout` belongs in [[hooks]]";
    assert!(misplaced.starts_with(message), "{misplaced}");
    for (line, message) in [
        (
            "timeout = 0",
            "`hooks[1].timeout` must be a whole number of seconds from 1 to 600, found the number 0",
        ),
        (
            "timeout = \"1\"",
            "`hooks[1].timeout` must be a whole number of seconds from 1 to 600, found the string",
        ),
        ("sandbox = \"auto\"", "`hooks[1].sandbox` must be \"on\" or \"off\", found the string \"auto\""),
        (
            "evnt = 1",
            "unknown key `hooks[1].evnt`, did you mean `hooks[1].event`? (valid here: event, matcher,",
        ),
    ] {
        let told = told(&format!("{good}{line}\n{good}"), 1);
        assert!(told.starts_with(&format!("~/config.toml:4: {message}")), "{told}");
    }
}

#[test]
fn a_printed_search_service_shows_where_its_key_comes_from_and_reads_back() {
    let printed = |place: &Place, variables: &[(&str, &str)]| {
        let text = place.shown(&print_config::text(&place.sources(variables, &[]), Path::new("/")));
        let from = text.find("[web_search]").map(|at| text[at..].to_owned());
        from.map(|text| text.split("\n\n").next().unwrap_or_default().trim_end().to_owned())
    };
    assert_eq!(printed(&Place::with(SCRIPTED), &[("BRAVE_API_KEY", "canary")]), None);
    let brave = Place::with("[web_search]\nprovider = \"brave\"\n");
    let expected = |key: &str| {
        format!(
            "[web_search]\nprovider = \"brave\"  # ~/config.toml:2\n\
             base_url = \"https://api.search.brave.com/\"  # default\n\
             # key: {key}\napi_key_env = \"BRAVE_API_KEY\"  # default"
        )
    };
    let with_key = printed(&brave, &[("BRAVE_API_KEY", "canary")]);
    assert_eq!(with_key, Some(expected("from BRAVE_API_KEY")));
    assert_eq!(printed(&brave, &[]), Some(expected("none; set BRAVE_API_KEY")));
    let own = Place::with("");
    let variables = [
        ("ATTACHE_WEB_SEARCH_PROVIDER", "searxng"),
        ("ATTACHE_WEB_SEARCH_BASE_URL", "http://127.0.0.1:8888/"),
    ];
    assert_eq!(
        printed(&own, &variables).unwrap(),
        "[web_search]\nprovider = \"searxng\"  # environment ATTACHE_WEB_SEARCH_PROVIDER\n\
         base_url = \"http://127.0.0.1:8888/\"  # environment ATTACHE_WEB_SEARCH_BASE_URL"
    );
    let again = Place::with(&print_config::text(&brave.sources(&[], &[]), Path::new("/")));
    assert_eq!(values(&brave), values(&again));
}

#[test]
fn a_search_needs_its_provider_and_its_key() {
    use crate::web_search::{SearchSetup, endpoint, search_setup};
    let none = Place::with("");
    assert!(endpoint(&none.sources(&[("BRAVE_API_KEY", "canary")], &[])).unwrap().is_none());
    let tavily = Place::with("[web_search]\nprovider = \"tavily\"\napi_key_env = \"MINE\"\n");
    for variables in [&[("TAVILY_API_KEY", "canary")][..], &[("MINE", " ")]] {
        let sources = tavily.sources(variables, &[]);
        assert!(endpoint(&sources).unwrap().is_none());
        assert!(matches!(search_setup(&sources), Ok(SearchSetup::NoKey(_, variable)) if variable == "MINE"));
    }
    let ready = endpoint(&tavily.sources(&[("MINE", "canary")], &[])).unwrap().unwrap();
    let shown = format!("{ready:?}");
    assert!(shown.contains("api.tavily.com") && !shown.contains("canary"), "{shown}");
    let own = Place::with("[web_search]\nprovider = \"searxng\"\nbase_url = \"http://127.0.0.1:8888\"\n");
    assert!(endpoint(&own.sources(&[], &[])).unwrap().is_some());
}

#[test]
fn without_a_file_the_printed_configuration_says_so() {
    let place = Place { directory: tempfile::tempdir().unwrap() };
    let printed = place.shown(&print_config::text(&place.sources(&[], &[]), Path::new("/")));
    assert!(
        printed.starts_with(
            "# configuration file: ~/config.toml (not there)\n# model = \"provider/model\"  # not set: the first available one\n"
        ),
        "{printed}"
    );
}

#[test]
fn no_debug_output_shows_the_environment() {
    let environment = ProcessEnvironment::from_pairs(&[("OPENAI_API_KEY", "sk-canary")]);
    assert_eq!(format!("{environment:?}"), "[\"OPENAI_API_KEY\"]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_text_makes_the_reader_panic_and_lines_exist(text in prop_oneof![
        any::<String>(),
        prop::collection::vec(prop_oneof![
            Just("[limits]".to_owned()), Just("[providers.a]".to_owned()), Just("[[providers]]".to_owned()), Just("[[permissions]]".to_owned()),
            Just("[providers.a.models.m]".to_owned()), Just("[limits.max_steps]".to_owned()),
            Just("[providers.openai]".to_owned()), Just("[providers.azure.models.m.price]".to_owned()),
            "(model|limits|providers|permissions|permission|pattern|action|match|dialect|base_url|api_key_env|script|models|price|context|images|store|a\\.b) = (1|\"x\"|\"script\"|\\[\\]|\\{\\}|true|\\{ a = 1 \\}|nan)",
            ".{0,8}",
        ], 0..8).prop_map(|lines| lines.join("\n")),
    ]) {
        let place = Place::with(&text);
        if let Err(errors) = place.load() {
            for error in errors.0 {
                prop_assert!(!error.message.is_empty() && !error.message.contains('\n'), "{}", error);
                prop_assert!(error.line() <= text.split('\n').count(), "{}", error);
            }
        }
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_values(
        name in "[a-zA-Z0-9_\\-\\.äöü\"'\\\\]{1,12}",
        model in "\\PC{1,12}",
        script in "[^\\x00]{1,20}",
        steps in 1..=100_000_i64,
        context in prop::option::of(1..=1_000_000_000_i64),
        images in any::<Option<bool>>(),
        drops in any::<bool>(),
    ) {
        let mut document = toml_edit::DocumentMut::new();
        document["thoughts"] = toml_edit::value(if drops { "drop" } else { "show" });
        document["limits"]["max_steps"] = toml_edit::value(steps);
        let provider = &mut document["providers"][&name];
        provider["dialect"] = toml_edit::value("script");
        provider["script"] = toml_edit::value(&script);
        if let Some(context) = context {
            provider["models"][&model]["context"] = toml_edit::value(context);
        }
        if let Some(images) = images {
            provider["models"][&model]["images"] = toml_edit::value(images);
        }
        let place = Place::with(&document.to_string());
        let config = place.load().unwrap();
        let again = Place::with(&print_config::text(&place.sources(&[], &[]), Path::new("/")));
        let reread = again.load().unwrap();
        prop_assert_eq!(values(&place), values(&again));
        let script = |config: &Config| match &config.providers[0].wire {
            ProviderWire::Script { script, .. } => script.value.clone(),
            ProviderWire::Http(_) => panic!("no script"),
        };
        prop_assert_eq!(script(&config), script(&reread));
        prop_assert_eq!(config.providers[0].name.clone(), name);
        prop_assert_eq!(reread.limits.max_steps.value, u32::try_from(steps).unwrap());
    }
}

#[test]
fn the_small_model_is_the_vendors_at_the_vendors_own_address() {
    let small = |config: &str, environment: &[(&str, &str)], provider: &str| {
        let config = Place::with(config).load_with(environment, &[]).unwrap();
        config.provider(provider).unwrap().small_model()
    };
    let vendors = VENDORS.iter().find(|vendor| vendor.id == "anthropic").unwrap().small_model;
    assert!(vendors.is_some());
    assert_eq!(small("", &[], "anthropic"), vendors);
    assert_eq!(small("[providers.anthropic]\napi_key_env = \"MINE\"\n", &[], "anthropic"), vendors);
    let elsewhere = "[providers.anthropic]\nbase_url = \"http://127.0.0.1:1\"\n";
    assert_eq!(small(elsewhere, &[], "anthropic"), None);
    assert_eq!(small("", &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")], "anthropic"), None);
    assert_eq!(small(SCRIPTED, &[], "demo"), None);
}

#[test]
fn telemetry_is_on_only_by_the_users_own_word() {
    use crate::telemetry::{TelemetrySetup, telemetry_setup};
    let goes_to = |config: &str, variables: &[(&str, &str)]| match telemetry_setup(
        &Place::with(config).sources(variables, &[]),
    ) {
        Ok(TelemetrySetup::NotWanted) => "nowhere".to_owned(),
        Ok(TelemetrySetup::Disabled) => "disabled".to_owned(),
        Ok(TelemetrySetup::Ready(collector)) => collector.shown(),
        Err(why) => why,
    };
    let endpoint = "[telemetry]\nendpoint = \"http://127.0.0.1:1\"\n";
    let enabled = "[telemetry]\nenabled = true\n";
    let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318/");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces/x");
    assert_eq!(goes_to("", &[standard, traces]), "nowhere");
    assert_eq!(goes_to(endpoint, &[standard]), "http://127.0.0.1:1/v1/traces");
    assert_eq!(goes_to(&format!("{endpoint}enabled = false"), &[]), "nowhere");
    assert_eq!(goes_to(enabled, &[]), "http://127.0.0.1:4318/v1/traces");
    assert_eq!(goes_to(enabled, &[standard]), "http://otel:4318/v1/traces");
    assert_eq!(goes_to(enabled, &[standard, traces]), "http://traces/x");
    assert_eq!(goes_to("", &[("ATTACHE_TELEMETRY_ENABLED", "true"), standard]), "http://otel:4318/v1/traces");
    assert_eq!(goes_to(endpoint, &[("OTEL_SDK_DISABLED", "True")]), "disabled");
    assert_eq!(
        goes_to(enabled, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "otel:4318")]),
        "OTEL_EXPORTER_OTLP_ENDPOINT: only http and https are spoken, not otel"
    );
    let header = format!("{endpoint}headers = {{ x-key = \"${{NOT_SET}}\" }}\n");
    assert_eq!(goes_to(&header, &[]), "the header x-key: NOT_SET is not set in the environment of attache");
}

/// A key for one backend must not reach another.
#[test]
fn headers_of_the_standard_variables_go_with_their_address_only() {
    use crate::telemetry::{TelemetrySetup, telemetry_setup};
    let headers = |config: &str| {
        let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "x-standard=canary"), ("MINE", "own")];
        match telemetry_setup(&Place::with(config).sources(&variables, &[])) {
            Ok(TelemetrySetup::Ready(collector)) => collector.header_names(),
            Ok(TelemetrySetup::NotWanted | TelemetrySetup::Disabled) | Err(_) => Vec::new(),
        }
    };
    assert_eq!(headers("[telemetry]\nenabled = true\n"), ["x-standard"]);
    let own = "[telemetry]\nendpoint = \"http://127.0.0.1:1\"\n[telemetry.headers]\nx-own = \"${MINE}\"\n";
    assert_eq!(headers(own), ["x-own"]);
}

#[test]
fn printed_telemetry_shows_no_key_and_reads_back() {
    let place = Place::with(
        "[telemetry]\nendpoint = \"http://127.0.0.1:1\"\ncontent = true\nheaders = { x-key = \"Bearer ${MINE}\" }\n",
    );
    let text = place.shown(&print_config::text(&place.sources(&[("MINE", "canary")], &[]), Path::new("/")));
    assert!(
        text.contains(
            "\n[telemetry]\nenabled = true  # default\nendpoint = \"http://127.0.0.1:1/\"  # ~/config.toml:2\n\
             content = true  # ~/config.toml:3\nheaders = { x-key = \"Bearer ${MINE}\" }  # ~/config.toml:4\n"
        ),
        "{text}"
    );
    let again = Place::with(&text.replace("~/", "/")).load().unwrap();
    let values = |headers: Option<Sourced<Vec<(String, String)>>>| headers.map(|headers| headers.value);
    assert_eq!(values(again.telemetry.headers), values(place.load().unwrap().telemetry.headers));
    let by_variable = [("ATTACHE_TELEMETRY_HEADERS", "x-key=canary")];
    let text = print_config::text(&place.sources(&by_variable, &[]), Path::new("/"));
    assert!(text.contains("# headers: x-key  # environment") && !text.contains("canary"), "{text}");
    assert!(!print_config::text(&Place::with("").sources(&[], &[]), Path::new("/")).contains("telemetry"));
}

#[test]
fn a_project_says_nothing_about_telemetry() {
    let config = Place::with("").load().unwrap();
    let text = "[telemetry]\nendpoint = \"http://evil\"\n";
    let told = config.of_project(Path::new("/w/.attache/config.toml"), text).unwrap_err().to_string();
    assert!(told.contains("config.toml:1: a project can't set `telemetry`"), "{told}");
}

#[test]
fn agents_of_all_backends_are_read_and_printed_without_their_secrets() {
    let place = Place::with(
        "[agents.support]\nbackend = \"ai-sdk\"\nurl = \"http://127.0.0.1:8000/api/chat\"\nhistory = \"last\"\n\
         headers = { Authorization = \"s3cret ${TOKEN}\" }\n\
         [agents.research]\nbackend = \"langgraph\"\nurl = \"http://127.0.0.1:2024\"\nassistant = \"agent\"\n\
         [agents.own]\nbackend = \"python\"\nmodule = \"my_app:agent\"\npython = \"python3\"\n\
         env = { KEY = \"s3cret\" }\n\
         [agents.other]\nbackend = \"acp\"\ncommand = [\"goose\", \"acp\"]\n",
    );
    let config = place.load().unwrap();
    let kinds: Vec<&str> = config.agents.iter().map(|agent| agent.backend.kind()).collect();
    assert_eq!(kinds, ["ai-sdk", "langgraph", "python", "acp"]);
    let AgentBackend::Python { directory, python, .. } = &config.agents[2].backend else {
        panic!("no python")
    };
    assert_eq!(*directory, place.path(""));
    assert_eq!(python.as_deref(), Some(Path::new("python3")));
    let printed = print_config::text(&place.sources(&[], &[]), Path::new("/"));
    assert!(!printed.contains("s3cret"), "{printed}");
    for line in [
        "[agents.support]",
        "history = \"last\"",
        "# values not shown: Authorization",
        "module = \"my_app:agent\"",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
}

/// Who reads the printed settings back has them all, and the secrets stay where they are.
#[test]
fn values_that_only_refer_to_variables_are_printed_and_read_back() {
    let settings = "[mcp.docs]\nurl = \"https://docs.test/mcp\"\n\
         headers = { Authorization = \"Bearer ${DOCS_TOKEN}\", x-key = \"s3cret\" }\n\
         oauth = { client_secret = \"${DOCS_SECRET}\" }\n\
         [mcp.files]\ncommand = [\"files\"]\nenv = { A = \"${A}${B}\", C = \"${C:-s3cret}\" }\n\
         [agents.own]\nbackend = \"acp\"\ncommand = [\"goose\", \"acp\"]\nenv = { KEY = \"${KEY}\" }\n";
    let place = Place::with(settings);
    let printed = print_config::text(&place.sources(&[("DOCS_TOKEN", "s3cret")], &[]), Path::new("/"));
    assert!(!printed.contains("s3cret"), "{printed}");
    for line in [
        "headers = { Authorization = \"Bearer ${DOCS_TOKEN}\" }",
        "# values not shown: x-key",
        "oauth = { client_secret = \"${DOCS_SECRET}\" }",
        "env = { A = \"${A}${B}\" }",
        "# values not shown: C",
        "env = { KEY = \"${KEY}\" }",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    let again = Place::with(&printed);
    let again = print_config::text(&again.sources(&[], &[]), Path::new("/"));
    assert!(again.contains("Bearer ${DOCS_TOKEN}") && again.contains("\"${A}${B}\""), "{again}");
}

#[test]
fn all_that_is_wrong_with_a_token_is_told_at_once() {
    let place = Place::with("[serve.tokens.\"a b\"]\nhash = \"abc\"\nscop = \"read\"\n");
    let told = place.errors_with(&[], &[]);
    for words in
        ["\"a b\" is no name", ".hash`: expected", "needs scope", "did you mean `serve.tokens.a b.scope`?"]
    {
        assert!(told.contains(words), "{words}\n{told}");
    }
}

#[test]
fn what_is_wrong_with_an_agent_is_told_with_its_line() {
    for (entry, words) in [
        ("[agents.build]\nbackend = \"acp\"", "is the name of an agent of attache itself"),
        ("[agents.\"a b\"]\nbackend = \"acp\"", "must have a name of letters"),
        ("[agents.a]", "needs backend = "),
        ("[agents.a]\nbackend = \"langgrph\"", "did you mean \"langgraph\"?"),
        ("[agents.a]\nbackend = \"ai-sdk\"", "needs url = "),
        ("[agents.a]\nbackend = \"ai-sdk\"\nurl = \"ftp://x\"", "an http or https address"),
        ("[agents.a]\nbackend = \"ai-sdk\"\nurl = \"http://u:p@x\"", "an http or https address"),
        ("[agents.a]\nbackend = \"python\"\nmodule = \"my_app\"", "must be a module and an attribute"),
        ("[agents.a]\nbackend = \"acp\"", "needs command = "),
        ("[agents.a]\nbackend = \"acp\"\ncommand = \"x\"\nurl = \"http://x\"", "`agents.a.url`"),
        ("agents = 1", "`agents` must be a table of agents"),
    ] {
        let place = Place::with(entry);
        let errors = place.errors_with(&[], &[]);
        assert!(errors.contains("~/config.toml:") && errors.contains(words), "{entry}\n{errors}");
    }
}

#[test]
fn variables_that_the_configuration_names_are_no_slips() {
    let hook = "[webhooks.issues]\nsecret_env = \"ATTACHE_HOOK_ISSUES\"\nprompt = \"x\"\n\
                [mcp.a]\nurl = \"https://a\"\nheaders = { a = \"${ATTACHE_OF_A}\" }\n";
    let place = Place::with(hook);
    place.load_with(&[("ATTACHE_HOOK_ISSUES", "s"), ("ATTACHE_OF_A", "s")], &[]).unwrap();
    Place::with("").load_with(&[("ATTACHE_HOOK_OTHER", "s")], &[]).unwrap();
    let twice = "[webhooks.a]\nsecret_env = \"S\"\nprompt = \"x\"\n[webhooks.b]\nsecret_env = \"S\"\nprompt = \"x\"\n";
    let errors = Place::with(twice).errors_with(&[], &[]);
    assert!(
        errors.contains(":5: `webhooks.b.secret_env` is S") && errors.contains("its own secret"),
        "{errors}"
    );
}

#[test]
fn a_project_gets_no_variable_that_the_user_names_or_that_holds_a_credential() {
    let place = Place::with(
        "[mcp.a]\ncommand = \"${HOME}/x\"\nenv = { A = \"${IN_MCP}\" }\n\
         [agents.b]\nbackend = \"ai-sdk\"\nurl = \"http://b\"\nheaders = { b = \"${IN_AGENT}\" }\n\
         [telemetry]\nheaders = { c = \"${IN_TELEMETRY}\" }\n",
    );
    let given = [("HOME", "/h"), ("AWS_SESSION_TOKEN", "t"), ("ATTACHE_TOKEN", "t"), ("GREETING", "hi")];
    let config = place.load_with(&given, &[]).unwrap();
    let names: Vec<String> = config.key_variables(&ProcessEnvironment::from_pairs(&given)).collect();
    let is_withheld = |wanted: &str| names.iter().any(|name| name == wanted);
    for name in
        ["IN_MCP", "IN_AGENT", "IN_TELEMETRY", "AWS_SESSION_TOKEN", "ATTACHE_TOKEN", "ANTHROPIC_API_KEY"]
    {
        assert!(is_withheld(name), "{name}: {names:?}");
    }
    assert!(!is_withheld("HOME") && !is_withheld("GREETING"), "{names:?}");
}
