//! Bad configurations and their exact messages, precedence, and what the printed configuration is worth.

use std::path::{Path, PathBuf};

use clap::Parser;
use proptest::prelude::*;

use super::*;
use crate::print_config;

/// A user's place with a config.toml.
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
        Dirs::from_environment(&Environment::from_pairs(&[("ATTACHE_HOME", home)])).unwrap()
    }

    fn load_with(&self, environment: &[(&str, &str)], options: &[&str]) -> Result<Config, ConfigErrors> {
        let args = Args::parse_from(["attache", "acp"].iter().chain(options));
        Config::load(&args, &Environment::from_pairs(environment), &self.dirs())
    }

    fn load(&self) -> Result<Config, ConfigErrors> {
        self.load_with(&[], &[])
    }

    /// The messages, with the place's path as `~`.
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
            "modle = \"a/b\"",
            "~/config.toml:1: unknown key `modle`, did you mean `model`? (valid here: durability, limits, model, providers, store, thoughts)",
        ),
        (
            "\n\nxyz = 1",
            "~/config.toml:3: unknown key `xyz` (valid here: durability, limits, model, providers, store, thoughts)",
        ),
        (
            "[[permissions]]\npermission = \"bash\"",
            "~/config.toml:1: unknown key `permissions` (valid here: durability, limits, model, providers, store, thoughts)",
        ),
        (
            "[limits]\nmax_step = 3",
            "~/config.toml:2: unknown key `limits.max_step`, did you mean `limits.max_steps`? (valid here: max_line_bytes, max_steps)",
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
        ("\n[providers.a]\nscript = \"x\"", "~/config.toml:2: `providers.a` needs dialect = \"script\""),
        (
            "[providers.a]\ndialect = \"script\"",
            "~/config.toml:1: `providers.a` needs script = \"FILE\", the transcript its answers come from",
        ),
        (
            "[providers.a]\ndialect = \"anthropic\"",
            "~/config.toml:2: `providers.a.dialect` \"anthropic\" is not in this version; known here: \"script\"",
        ),
        (
            "[providers.a]\ndialect = \"scirpt\"",
            "~/config.toml:2: `providers.a.dialect` \"scirpt\" is unknown, did you mean \"script\"? (known here: \"script\"; not in this version: openai-chat, openai-responses, anthropic, gemini)",
        ),
        (
            "[providers.a]\ndialect = 1",
            "~/config.toml:2: `providers.a.dialect` must be the string \"script\", found the number 1",
        ),
        (
            "[providers.a]\ndialect = \"script\"\nscript = 1",
            "~/config.toml:3: `providers.a.script` must be the path of a script as a string, found the number 1",
        ),
        (
            "[providers.a]\ndialect = \"script\"\nscript = \"x\"\nbase_url = \"http://h\"",
            "~/config.toml:4: unknown key `providers.a.base_url` (valid here: dialect, script, models)",
        ),
        (
            "[providers.a]\ndialect = \"script\"\nscript = \"x\"\n[providers.a.models.m]\ncontext = -1\nimages = \"no\"\nmax_ouput = 3",
            "~/config.toml:5: `providers.a.models.m.context` must be a whole number of tokens from 1 to 1000000000, found the number -1\n\
             ~/config.toml:6: `providers.a.models.m.images` must be true or false, found the string \"no\"\n\
             ~/config.toml:7: unknown key `providers.a.models.m.max_ouput`, did you mean `providers.a.models.m.max_output`? (valid here: context, max_output, images, audio)",
        ),
        (
            "model = \"b/m\"",
            "~/config.toml:1: model `b/m` needs a provider `b` (no provider is configured); add [providers.b] with dialect = \"script\" and script = \"FILE\" to ~/config.toml",
        ),
        ("model = \"a/b\"\nmodel = \"c/d\"", "~/config.toml:2: not valid TOML: duplicate key"),
    ];
    for (config, message) in table {
        assert_eq!(Place::with(config).errors_with(&[], &[]), *message, "{config}");
    }
}

#[test]
fn everything_wrong_is_told_at_once_in_the_order_of_the_file() {
    let place =
        Place::with("[limits]\nmax_steps = 0\nmax_lines = 1\n[providers.demo]\ndialect = \"gemini\"\n");
    let errors = place.load_with(
        &[("ATTACHE_THOUGHTS", "x"), ("ATTACHE_MODLE", "x")],
        &["--model", "demo", "--store", "x:y"],
    );
    let places: Vec<String> =
        errors.unwrap_err().0.iter().map(|error| place.shown(&error.origin.to_string())).collect();
    assert_eq!(
        places,
        [
            "~/config.toml:2",
            "~/config.toml:3",
            "~/config.toml:5",
            "environment ATTACHE_MODLE",
            "environment ATTACHE_THOUGHTS",
            "option --model",
        ],
        "a scheme of one letter is a path"
    );
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
        "environment ATTACHE_MAX_STEPS: unknown variable (valid: ATTACHE_MODEL, ATTACHE_STORE, ATTACHE_THOUGHTS, \
         ATTACHE_DURABILITY, ATTACHE_LIMITS_MAX_STEPS, ATTACHE_LIMITS_MAX_LINE_BYTES, ATTACHE_HOME, ATTACHE_LOG)"
    );
    assert!(place.errors_with(&[("ATTACHE_MODLE", "3")], &[]).contains("did you mean ATTACHE_MODEL?"));
    assert_eq!(
        place.errors_with(&[], &["--store", "mysql://h"]),
        "option --store: `store`: this version keeps sessions in SQLite only: give a path or sqlite:PATH, not `mysql:`"
    );
    assert_eq!(
        Place::with(SCRIPTED).errors_with(&[], &["--model", "dem/m"]),
        "option --model: model `dem/m` needs a provider `dem` (configured: demo; did you mean `demo`?); add [providers.dem] \
         with dialect = \"script\" and script = \"FILE\" to ~/config.toml"
    );
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
    assert_eq!(config.limits.max_steps, Sourced { value: 100, origin: Origin::Default });
    assert!(config.open_providers().unwrap().is_empty());
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
    assert_eq!(config.providers.len(), 1);
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
    assert_eq!(config.store.origin, Origin::Default);
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
fn without_a_chosen_model_the_first_provider_has_one() {
    let place = Place::with(&format!("{SCRIPTED}[providers.another]\ndialect = \"script\"\nscript = \"x\""));
    let model = place.load().unwrap().model.unwrap();
    assert_eq!((model.value.provider_id.as_str(), model.value.model_id.as_str()), ("demo", "default"));
    assert_eq!(model.origin, Origin::Default);
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

#[test]
fn scripts_are_found_beside_the_file_and_models_are_as_stated() {
    let place = Place::with(&format!(
        "{SCRIPTED}[providers.demo.models.default]\nimages = true\n[providers.demo.models.big]\ncontext = 500\nmax_output = 5\naudio = true"
    ));
    std::fs::write(place.path("demo.script"), "model small context=10\non *\n text \"hi\"\n").unwrap();
    let providers = place.load().unwrap().open_providers().unwrap();
    let models: Vec<_> = attache_core::ports::Model::available(&providers)
        .iter()
        .map(|info| (info.model.model_id.clone(), info.context, info.max_output, info.images, info.audio))
        .collect();
    assert_eq!(
        models,
        [
            ("default".into(), 200_000, 32_000, true, false),
            ("small".into(), 10, 32_000, false, false),
            ("big".into(), 500, 5, false, true)
        ]
    );
}

#[test]
fn a_script_that_is_missing_or_wrong_is_named() {
    let place = Place::with(SCRIPTED);
    let error = || place.shown(&place.load().unwrap().open_providers().unwrap_err().to_string());
    assert_eq!(error(), "~/config.toml:3: `providers.demo.script` ~/demo.script: there is no such file");
    std::fs::write(place.path("demo.script"), "on *\n\n sya \"x\"\n").unwrap();
    assert!(error().starts_with("~/demo.script:3: expected on, reasoning, text,"), "{}", error());
}

/// The values alone, without their origins.
fn values(config: &Config) -> String {
    let printed = print_config::text(config);
    let lines = printed.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split("  # ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_printed_configuration_shows_values_and_origins() {
    let place = Place::with(&format!("{SCRIPTED}models.\"a b\".context = 5\nmodels.\"a b\".images = false"));
    let config = place.load_with(&[("ATTACHE_DURABILITY", "full")], &["--store", "/s.db"]).unwrap();
    assert_eq!(
        place.shown(&print_config::text(&config)),
        "# configuration file: ~/config.toml\n\
         model = \"demo/default\"  # default\n\
         store = \"/s.db\"  # option --store\n\
         thoughts = \"show\"  # default\n\
         durability = \"full\"  # environment ATTACHE_DURABILITY\n\
         \n[limits]\n\
         max_steps = 100  # default\n\
         max_line_bytes = 33554432  # default\n\
         \n[providers.demo]\n\
         dialect = \"script\"  # ~/config.toml:2\n\
         script = \"~/demo.script\"  # ~/config.toml:3\n\
         \n[providers.demo.models.\"a b\"]\n\
         context = 5  # ~/config.toml:4\n\
         images = false  # ~/config.toml:5\n"
    );
}

#[test]
fn without_a_file_the_printed_configuration_says_so() {
    let place = Place { directory: tempfile::tempdir().unwrap() };
    let printed = place.shown(&print_config::text(&place.load().unwrap()));
    assert!(
        printed.starts_with(
            "# configuration file: ~/config.toml (not there)\n# model = \"provider/model\"  # not set\n"
        ),
        "{printed}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_text_makes_the_reader_panic_and_lines_exist(text in prop_oneof![
        any::<String>(),
        prop::collection::vec(prop_oneof![
            Just("[limits]".to_owned()), Just("[providers.a]".to_owned()), Just("[[providers]]".to_owned()),
            Just("[providers.a.models.m]".to_owned()), Just("[limits.max_steps]".to_owned()),
            "(model|limits|providers|dialect|script|models|context|images|store|a\\.b) = (1|\"x\"|\"script\"|\\[\\]|\\{\\}|true|\\{ a = 1 \\}|nan)",
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
        let config = Place::with(&document.to_string()).load().unwrap();
        let again = Place::with(&print_config::text(&config));
        let reread = again.load().unwrap();
        prop_assert_eq!(values(&config), values(&reread));
        prop_assert_eq!(config.providers[0].script.value.clone(), reread.providers[0].script.value.clone());
        prop_assert_eq!(config.providers[0].name.clone(), name);
        prop_assert_eq!(reread.limits.max_steps.value, u32::try_from(steps).unwrap());
    }
}
